"""The code interpreter: what run_code gives, and contexts."""

import asyncio
import base64

from scenario import book, w

SCENARIOS, scenario = book()
PNG = b"\x89PNG"


def is_png(text):
    return base64.b64decode(text).startswith(PNG)


async def run(world, code, **options):
    """The execution of code that must not fail."""
    done = await world.begin(world.main.run_code, code, **options)
    assert done.error is None, done.error
    return done


@scenario("code with a result")
async def result(world):
    done = await run(world, "x = 6\nx * 7")
    assert done.text == "42" and done.results[0].is_main_result and done.execution_count >= 1
    assert (await run(world, "x")).text == "6"


@scenario("indented code")
async def indented(world):
    done = await run(world, """
        import math

        def area(r):
            return round(math.pi * r ** 2, 2)

        print("computed")
        area(2)
    """)
    assert done.text == "12.57" and "".join(done.logs.stdout) == "computed\n"


@scenario("strings, dicts and lists")
async def values(world):
    assert (await run(world, "'plain'")).text == "plain"
    assert (await run(world, "import os; os.getcwd()")).text == "/home/user"
    done = await run(world, "{'a': [1, None, 2.5], 'b': 'x'}")
    assert done.results[0].json == {"a": [1, None, 2.5], "b": "x"} and done.text == "{'a': [1, None, 2.5], 'b': 'x'}"
    assert (await run(world, "[1, 2]")).results[0].json == [1, 2]


@scenario("output with callbacks, in order")
async def callbacks(world):
    seen = []
    code = "import sys\nprint('one')\nsys.stdout.flush()\nprint('two', file=sys.stderr)\ndisplay('shown')\n3"
    done = await world.begin(
        world.main.run_code, code, on_stdout=lambda m: seen.append(("out", m.line)),
        on_stderr=lambda m: seen.append(("err", m.line)), on_result=lambda r: seen.append(("result", r.text)))
    assert seen == [("out", "one\n"), ("err", "two\n"), ("result", "shown"), ("result", "3")], seen
    assert "".join(done.logs.stdout) == "one\n" and "".join(done.logs.stderr) == "two\n"


@scenario("code that fails")
async def fails(world):
    told = []
    done = await world.begin(world.main.run_code, "def f():\n    return 1 / 0\nf()", on_error=told.append)
    assert (done.error.name, done.error.value) == ("ZeroDivisionError", "division by zero") and told[0].name == "ZeroDivisionError"
    assert "----> 2     return 1 / 0" in done.error.traceback and "Cell In[" in done.error.traceback
    assert (await world.begin(world.main.run_code, "x = = 1")).error.name == "SyntaxError"


@scenario("commands and magics")
async def magics(world):
    assert "".join((await run(world, "!pwd")).logs.stdout) == "/home/user\n"
    assert "".join((await run(world, "%%bash\necho $((6*7))")).logs.stdout) == "42\n"
    assert "pip" in "".join((await run(world, "%pip --version")).logs.stdout)
    assert (await run(world, "lines = !printf 'a\\nb\\n'\nlines")).results[0].json == ["a", "b"]


@scenario("code that awaits")
async def awaits(world):
    assert (await run(world, "import asyncio\nawait asyncio.sleep(0.01, 7)")).text == "7"
    js = "async function main() { return 'Hello' }\nawait main()"
    assert (await run(world, js, language="js")).text == "Hello"


@scenario("results of every form")
async def forms(world):
    done = await run(world, """
        class Rich:
            def __repr__(self): return 'plain'
            def _repr_html_(self): return '<b>x</b>'
            def _repr_markdown_(self): return '*x*'
            def _repr_svg_(self): return '<svg/>'
            def _repr_latex_(self): return '$x$'
            def _repr_javascript_(self): return 'x()'
        Rich()
    """)
    one = done.results[0]
    assert (one.text, one.html, one.markdown, one.svg, one.latex, one.javascript) == ("plain", "<b>x</b>", "*x*", "<svg/>", "$x$", "x()")
    done = await run(world, "import pandas as pd\npd.DataFrame({'a': [1, 2], 'b': ['x', 'y']})")
    assert done.results[0].data == {"a": [1, 2], "b": ["x", "y"]} and "<table" in done.results[0].html


@scenario("images")
async def images(world):
    code = "    from PIL import Image\n    image = Image.new('RGB', (2, 2), 'red')\n    "
    for last in ("image.show()", "image.save('/tmp/shown.png')", "image"):
        done = await run(world, code + last)
        assert len(done.results) == 1 and is_png(done.results[0].png)


@scenario("charts")
async def charts(world):
    done = await run(world, """
        import matplotlib.pyplot as plt
        plt.plot([1, 2], [3, 4], label="rise"); plt.title("T"); plt.xlabel("Time (s)"); plt.show()
        plt.scatter([1, 2], [3, 4]); plt.show()
        plt.bar(["p", "q"], [3, 4]); plt.show()
        plt.pie([90, 10], labels=["a", "b"], startangle=90); plt.show()
        plt.boxplot([[1, 2, 3, 4, 10]]); plt.show()
        f, (a, b) = plt.subplots(1, 2); a.plot([1]); b.bar([1], [2]); plt.show()
    """, timeout=120)
    found = [one.chart for one in done.results]
    assert all(is_png(one.png) for one in done.results)
    assert [str(getattr(c.type, "value", c.type)) for c in found] == ["line", "scatter", "bar", "pie", "box_and_whisker", "superchart"]
    line, _, bar, pie, box, both = found
    assert (line.title, line.x_label, line.x_unit, line.elements[0].label) == ("T", "Time (s)", "s", "rise")
    assert [tuple(point) for point in line.elements[0].points] == [(1, 3), (2, 4)]
    assert [(e.label, e.group, e.value) for e in bar.elements] == [("p", "Group 0", 3), ("q", "Group 0", 4)]
    assert [(e.label, e.angle, e.radius) for e in pie.elements] == [("a", 324, 1), ("b", 36, 1)]
    assert [(e.min, e.first_quartile, e.median, e.third_quartile, e.max, e.outliers) for e in box.elements] == [(1, 2, 3, 4, 4, [10])]
    assert len(both.elements) == 2


@scenario("variables of a call")
async def variables(world):
    show = "import os; os.environ.get('OF_CALL', 'none')"
    assert (await run(world, show, envs={"OF_CALL": "v"})).text == "v" and (await run(world, show)).text == "none"
    assert (await run(world, "os.environ['OF_BOX']")).text == "yes"
    assert (await run(world, "process.env.OF_CALL", language="js", envs={"OF_CALL": "v"})).text == "v"
    assert "".join((await run(world, "echo $OF_CALL", language="bash", envs={"OF_CALL": "v"})).logs.stdout) == "v\n"


LANGUAGES = {"js": ("const x = 41", "x + 1", "42"), "ts": ("const y: number = 41", "y + 1", "42"), "r": ("x <- 41", "x + 1", "[1] 42"),
             "java": ("int x = 41;", "x + 1", "42")}


def language_scenario(language, first, get, text):
    @scenario(f"language {language}")
    async def speaks(world):
        await run(world, first, language=language)
        assert (await run(world, get, language=language)).results[0].text == text


for each, codes in LANGUAGES.items():
    language_scenario(each, *codes)


@scenario("languages by their names")
async def languages(world):
    assert "".join((await run(world, "echo $((6*7))", language="bash")).logs.stdout) == "42\n"
    assert (await run(world, "6 * 7", language="javascript")).text == (await run(world, "6 * 7", language="python")).text == "42"
    await world.rejects("SandboxException InvalidArgumentException", world.main.run_code, "1", language="cobol")


@scenario("code is run by root")
async def root(world):
    assert (await run(world, "import os; os.getuid()")).text == "0"
    context = await w(world.main.create_code_context(cwd="/root"))
    assert context.cwd == "/root" and (await run(world, "import os; os.getcwd()", context=context)).text == "/root"
    await w(world.main.remove_code_context(context))


@scenario("contexts")
async def contexts(world):
    one, two = await w(world.main.create_code_context(cwd="/tmp")), await w(world.main.create_code_context(language="javascript"))
    assert (one.language, one.cwd, two.language, two.cwd) == ("python", "/tmp", "javascript", "/home/user")
    await run(world, "v = 1", context=one)
    await run(world, "const v = 2", context=two)
    assert (await run(world, "v", context=one)).text == "1" and (await run(world, "v", context=two)).text == "2"
    listed = [each.id for each in await w(world.main.list_code_contexts())]
    assert one.id in listed and two.id in listed
    await w(world.main.restart_code_context(one))
    assert (await world.begin(world.main.run_code, "v", context=one)).error.name == "NameError"
    await w(world.main.remove_code_context(one))
    await w(world.main.remove_code_context(two.id))
    assert one.id not in [each.id for each in await w(world.main.list_code_contexts())]
    await world.rejects("SandboxException NotFoundException", world.main.run_code, "1", context=one)


@scenario("a timeout interrupts the code and leaves the context")
async def timeout(world):
    await run(world, "kept = 7")
    await world.rejects("TimeoutException", world.main.run_code, "import time\nwhile True: time.sleep(0.1)", timeout=1)
    assert (await run(world, "kept", timeout=20)).text == "7"


@scenario("executions at once wait for each other")
async def queue(world):
    await run(world, "order = []")
    await asyncio.gather(*(run(world, f"order.append({i})") for i in range(4)))
    assert (await run(world, "sorted(order)")).text == "[0, 1, 2, 3]"


@scenario("execution counts")
async def counts(world):
    context = await w(world.main.create_code_context())
    assert [(await run(world, "1", context=context)).execution_count for _ in range(3)] == [1, 2, 3]
    await w(world.main.remove_code_context(context))


@scenario("a box that was killed")
async def killed(world):
    b = await world.box()
    await w(b.kill())
    await world.rejects("TimeoutException", b.run_code, "1")
