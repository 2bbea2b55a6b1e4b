"""/v1/sandboxes/{id}/contexts and …/execute: code in interpreters that remember."""

import base64
import json
import subprocess
import time

import pytest

import paddock

LANGUAGES = ("python", "javascript", "bash")
FIELDS = {"execution_count", "stdout", "stderr", "encoding", "results", "error", "duration_ms", "timed_out", "oom_killed",
          "state_lost", "truncated"}


def have(*modules):
    """Whether the machine's own Python, which boxes see, has them."""
    script = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {modules!r})))"
    return subprocess.run(["/usr/bin/python3", "-c", script]).returncode == 0


class Context:
    def __init__(self, box, document):
        self.box, self.document, self.id = box, document, document["id"]
        self.path = f"{box.path}/contexts/{self.id}"

    def try_execute(self, code, **options):
        return self.box.client.post(self.path + "/execute", {"code": code, **options})

    def execute(self, code, **options):
        response = self.try_execute(code, **options)
        assert response.status == 200, response
        document = response.json()
        assert set(document) == FIELDS
        return document

    def check(self, code, **options):
        document = self.execute(code, **options)
        assert document["error"] is None, document["error"]
        return document

    def text(self, code):
        """The text of the one main result."""
        results = [r for r in self.check(code)["results"] if r["main"]]
        assert len(results) == 1, results
        return results[0]["text"]

    def out(self, code):
        return self.check(code)["stdout"]

    def error(self, code, **options):
        document = self.execute(code, **options)
        assert document["error"] and set(document["error"]) == {"name", "value", "traceback"}
        return document["error"]

    def post(self, what):
        response = self.box.client.post(f"{self.path}/{what}", {})
        assert response.status == 200, response
        return response.json()

    def with_client(self, client):
        return Context(self.box.with_client(client), self.document)


def make(box, language, **wish):
    response = box.client.post(box.path + "/contexts", {"language": language, **wish})
    assert response.status == 201, response
    return Context(box, response.json())


def execute(box, code, **options):
    response = box.client.post(box.path + "/execute", {"code": code, **options})
    assert response.status == 200, response
    return response.json()


@pytest.fixture(scope="module")
def place(api):
    """One box for the tests that do no harm to their neighbours."""
    box = api.create()
    yield box
    box.delete()


@pytest.fixture
def box(make_box):
    return make_box()


@pytest.fixture(scope="module")
def python(place):
    return make(place, "python")


@pytest.fixture(scope="module")
def js(place):
    return make(place, "javascript")


@pytest.fixture(scope="module")
def bash(place):
    return make(place, "bash")


def events(client, path, document, form="application/x-ndjson"):
    """Yields (type, fields) as they come."""
    body = json.dumps(document).encode()
    response = client.start("POST", path, body, {"Content-Type": "application/json", "Accept": form})
    assert response.status == 200, response.read()
    assert response.headers["content-type"] == form
    kind = None
    for line in response:
        line = line.rstrip(b"\n")
        if form == "application/x-ndjson":
            event = json.loads(line)
            yield event.pop("type"), event
        elif line.startswith(b"event: "):
            kind = line[7:].decode()
        elif line.startswith(b"data: "):
            yield kind, json.loads(line[6:])


# ---- contexts --------------------------------------------------------------


def test_create_list_get_delete(box):
    context = make(box, "python", cwd="/tmp")
    assert context.document["language"] == "python" and context.document["cwd"] == "/tmp"
    assert context.document["created_at"].endswith("Z") and paddock.ID.match(context.id)
    other = make(box, "bash")
    listed = box.client.get(box.path + "/contexts").json()["contexts"]
    assert [c["id"] for c in listed] == [context.id, other.id]
    assert box.client.get(context.path).json() == listed[0]
    context.check("import time")
    assert box.client.delete(context.path).status == 204
    assert box.client.get(context.path).status == 404
    assert box.client.delete(context.path).status == 404
    assert context.try_execute("1").status == 404
    assert [c["id"] for c in box.client.get(box.path + "/contexts").json()["contexts"]] == [other.id]
    assert "python3" not in box.check("ps -eo args", user="root")


def test_environment_cwd_and_user(box):
    context = make(box, "python", cwd="/tmp", env={"A": "1 ü"}, user="root")
    assert context.text("import os; (os.getcwd(), os.environ['A'], os.getuid())") == "('/tmp', '1 ü', 0)"
    context.post("restart")
    assert context.text("import os; (os.getcwd(), os.environ['A'], os.getuid())") == "('/tmp', '1 ü', 0)"


@pytest.mark.parametrize("language", LANGUAGES)
def test_environment_of_one_execution(box, language):
    context = make(box, language, env={"B": "old"})
    show = {"python": "import os\nprint(os.environ.get('A'), os.environ.get('B'))\n!echo $A-$B",
            "javascript": "console.log(process.env.A, process.env.B);"
                          "process.stdout.write(require('child_process').execSync('echo $A-$B'))",
            "bash": "echo \"$A\" \"$B\"; sh -c 'echo $A-$B'"}[language]
    value = "it's \"ü\" $HOME\n2"
    assert context.check(show, env={"A": value, "B": "new"})["stdout"] == f"{value} new\n" + (
        "it's \"ü\" $HOME 2-new\n")
    none = {"python": "None", "javascript": "undefined", "bash": ""}[language]
    assert context.check(show)["stdout"] == f"{none} old\n-old\n"
    assert context.try_execute(show, env={"A-B": "1"}).status == 400


@pytest.mark.parametrize("wish", [
    {}, {"language": "cobol"}, {"language": "python", "cwd": "relative"}, {"language": "python", "user": "nobody9"},
    {"language": "python", "cwd": "/does/not/exist"}, {"language": "python", "env": {"A=B": "1"}},
    {"language": "python", "unknown": 1},
])
def test_bad_wishes(place, wish):
    response = place.client.post(place.path + "/contexts", wish)
    assert response.status == 400 and response.code() == "invalid_argument"


def test_what_never_ran_is_not_listed(place):
    before = place.client.get(place.path + "/contexts").json()
    place.client.post(place.path + "/contexts", {"language": "python", "cwd": "/does/not/exist"})
    assert place.client.get(place.path + "/contexts").json() == before


def test_contexts_are_bounded(box):
    for i in range(32):
        response = box.client.post(box.path + "/contexts", {"language": "bash"})
        assert response.status == 201, (i, response)
    response = box.client.post(box.path + "/contexts", {"language": "bash"})
    assert response.status == 429 and response.code() == "quota_exceeded"


def test_contexts_are_apart(box):
    one, two = make(box, "python"), make(box, "python")
    one.check("x = 1")
    assert two.error("x")["name"] == "NameError"


@pytest.mark.parametrize("language", LANGUAGES)
def test_default_contexts(box, language):
    code = {"python": "x = 5", "javascript": "let x = 5", "bash": "x=5"}[language]
    show = {"python": "print(x)", "javascript": "console.log(x)", "bash": "echo $x"}[language]
    assert execute(box, code, language=language)["execution_count"] == 1
    assert execute(box, show, language=language)["stdout"] == "5\n"
    # It has the name of its language.
    assert execute(box, show, context=language)["stdout"] == "5\n"
    assert [c["id"] for c in box.client.get(box.path + "/contexts").json()["contexts"]] == [language]
    assert Context(box, {"id": language}).check(show)["execution_count"] == 4


def test_python_is_the_default(place):
    assert execute(place, "6 * 7")["results"][0]["text"] == "42"


def test_context_and_language_must_agree(place, js):
    response = place.client.post(place.path + "/execute", {"code": "1", "context": js.id, "language": "python"})
    assert response.status == 400
    assert execute(place, "1 + 1", context=js.id)["results"][0]["text"] == "2"
    response = place.client.post(place.path + "/execute", {"code": "1", "context": "nosuch"})
    assert response.status == 404


def test_other_tenants_see_nothing(daemon, place, python):
    key = daemon.client().post("/v1/keys", {"tenant": "stranger", "create_tenant": True})
    assert key.status == 201, key
    stranger = paddock.Client(daemon, key.json()["key"])
    assert stranger.get(python.path).status == 404
    assert stranger.post(python.path + "/execute", {"code": "1"}).status == 404
    assert stranger.post(place.path + "/execute", {"code": "1"}).status == 404


# ---- Python ----------------------------------------------------------------


def test_state_persists(python):
    python.check("def f(n):\n    return n + k\nk = 40")
    assert python.text("f(2)") == "42"
    assert python.text("_ + 1") == "43"


def test_stdout_and_stderr_are_apart(python):
    answer = python.check("import sys\nprint('out')\nprint('err', file=sys.stderr)\nNone")
    assert (answer["stdout"], answer["stderr"], answer["results"]) == ("out\n", "err\n", [])


def test_descriptors_themselves_are_captured(python):
    code = "import os, subprocess\nos.write(1, b'raw '); subprocess.run('echo child; echo e >&2', shell=True); " \
           "import ctypes; ctypes.CDLL(None).printf(b'libc\\n'); None"
    answer = python.check(code)
    assert sorted(answer["stdout"].split()) == ["child", "libc", "raw"] and answer["stderr"] == "e\n"


def test_binary_output(python):
    answer = python.check("import os; os.write(1, bytes(range(256))); None")
    assert answer["encoding"] == "base64" and base64.b64decode(answer["stdout"]) == bytes(range(256))


def test_output_is_bounded(python):
    answer = python.check("print('x' * (20 << 20))")
    assert answer["truncated"] and len(answer["stdout"]) == 8 << 20
    assert python.text("1 + 1") == "2"


def test_semicolon_hides_the_result(python):
    assert python.check("5;")["results"] == []


def test_top_level_await(python):
    code = "import asyncio\nasync def g():\n    await asyncio.sleep(0.01)\n    return 7\nawait g()"
    assert python.text(code) == "7"
    assert python.text("x = await g()\n[await g() for _ in range(2)] + [x]") == "[7, 7, 7]"
    assert python.out("asyncio.run(g()); print('nested')") == "nested\n"


def test_traceback_shows_the_code_and_not_the_driver(python):
    python.check("def broken(n):\n    return 1 / n  # the line")
    error = python.error("x = 3\nbroken(0)")
    assert (error["name"], error["value"]) == ("ZeroDivisionError", "division by zero")
    assert "return 1 / n  # the line" in error["traceback"] and "broken(0)" in error["traceback"]
    assert "<paddock>" not in error["traceback"] and "line 2\n" in error["traceback"]


def test_chained_errors(python):
    error = python.error("try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError('second') from e")
    assert error["name"] == "ValueError" and "ZeroDivisionError" in error["traceback"]
    assert "<paddock>" not in error["traceback"]


def test_syntax_error(python):
    error = python.error("a = 1\nb = = 2")
    assert error["name"] == "SyntaxError" and "line 2" in error["traceback"] and "b = = 2" in error["traceback"]


def test_errors_of_errors(python):
    code = "class E(Exception):\n    def __str__(self): raise RuntimeError\nraise E"
    assert python.error(code)["name"] == "E"
    assert python.error("def f(): f()\nf()")["name"] == "RecursionError"
    assert python.error("raise ValueError('\\0\\ud800 ü')")["value"] == "\ufffd? ü"


def test_sys_exit_does_not_end_it(python):
    python.check("kept = 1")
    answer = python.execute("import sys; sys.exit(3)")
    assert (answer["error"]["name"], answer["error"]["value"], answer["state_lost"]) == ("SystemExit", "3", False)
    assert python.text("kept") == "1"


def test_input_is_at_its_end(python):
    assert python.error("input()")["name"] == "EOFError"
    assert python.text("import sys; sys.stdin.read()") == "''"


def test_execution_counts(box):
    context = make(box, "python")
    assert [context.check("1")["execution_count"] for _ in range(3)] == [1, 2, 3]


def test_rich_results(python):
    code = """
class Rich:
    def __repr__(self): return 'plain'
    def _repr_html_(self): return '<b>x</b>'
    def _repr_markdown_(self): return '*x*'
    def _repr_latex_(self): return '$x$'
    def _repr_svg_(self): return '<svg/>'
    def _repr_png_(self): return b'\\x89PNG'
    def _repr_jpeg_(self): return b'jpeg', {'width': 1}
    def _repr_json_(self): return {'a': [1, float('nan'), None, {'b': object}], 1: 'one'}
Rich()
"""
    [result] = python.check(code)["results"]
    assert result.pop("json")["a"][:3] == [1, None, None]
    assert result == {
        "main": True, "truncated": False, "text": "plain", "html": "<b>x</b>", "markdown": "*x*", "latex": "$x$",
        "svg": "<svg/>", "png": base64.b64encode(b"\x89PNG").decode(), "jpeg": base64.b64encode(b"jpeg").decode(),
    }


def test_mime_bundle(python):
    code = """
class Bundle:
    def _repr_mimebundle_(self, **_):
        return {'text/plain': 'p', 'text/html': '<i>h</i>', 'application/x-own': {'k': 1}}, {}
Bundle()
"""
    [result] = python.check(code)["results"]
    assert (result["text"], result["html"], result["extra"]) == ("p", "<i>h</i>", {"application/x-own": {"k": 1}})


def test_display(python):
    answer = python.check("print('a'); display(1, 'two'); display({'text/html': '<p>'}, raw=True); 3")
    assert [(r["main"], r["text"]) for r in answer["results"]] == [
        (False, "1"), (False, "'two'"), (False, ""), (True, "3")]
    assert answer["results"][2]["html"] == "<p>"


def test_large_results_are_cut(python):
    [result] = python.check("'x' * (30 << 20)")["results"]
    assert result["truncated"] and len(result["text"]) == 1 << 20
    code = "class Fat:\n    def _repr_html_(self): return 'x' * (30 << 20)\nFat()"
    [result] = python.check(code)["results"]
    assert result["truncated"] and "html" not in result and "Fat" in result["text"]


def test_a_repr_that_fails(python):
    error = python.error("class Bad:\n    def __repr__(self): raise KeyError('no')\nBad()")
    assert error["name"] == "KeyError"
    assert python.text("1") == "1"


def test_shell_lines(python):
    answer = python.check("!echo from shell; echo err >&2\nfor i in range(2):\n    !echo loop\n_exit_code")
    assert answer["stdout"] == "from shell\nloop\nloop\n" and answer["stderr"] == "err\n"
    assert python.text("lines = !printf 'a\\nb\\n'\nlines") == "['a', 'b']"
    assert python.out("%%bash\necho $((1+1))") == "2\n"
    assert python.text("'''\n!not a command\n'''") == r"'\n!not a command\n'"


def test_magics(box):
    context = make(box, "python")
    assert context.out("%cd /tmp") == "/tmp\n"
    assert context.text("%env PADDOCK_T=x y\nimport os; os.environ['PADDOCK_T'], os.getcwd()") == "('x y', '/tmp')"
    assert "pip" in context.check("%pip --version")["stdout"] + context.check("%pip --version")["stderr"]
    assert context.error("%nosuch")["name"] == "UsageError"
    assert context.text("7 % 4") == "3"


def test_large_source(python):
    big = "x = '" + "a" * (2 << 20) + "'\nlen(x)"
    assert python.text(big) == str(2 << 20)


def test_main_module(python):
    code = "import pickle\nclass P: pass\n__name__, type(pickle.loads(pickle.dumps(P()))).__module__"
    assert python.text(code) == "('__main__', '__main__')"


def test_fork_does_not_double_the_interpreter(python):
    answer = python.check("import os\npid = os.fork()\nif pid: os.waitpid(pid, 0)\nprint('here')")
    assert answer["stdout"] == "here\nhere\n"
    assert python.text("1 + 1") == "2"


def test_threads_and_late_output(python):
    python.check("import threading\nt = threading.Timer(0.2, lambda: print('late'))\nt.start()")
    answer = python.check("t.join()\nprint('now')")
    assert answer["stdout"] == "late\nnow\n"
    # What is printed while no code runs comes with the next.
    python.check("t = threading.Timer(0.1, lambda: (print('between'), open('/tmp/between', 'w')))\nt.start()")
    paddock.until(lambda: python.box.exec("test -e /tmp/between").exit_code == 0, "it has printed")
    assert python.check("None")["stdout"] == "between\n"


def test_future_imports_hold(box):
    context = make(box, "python")
    context.check("from __future__ import annotations")
    assert context.text("def f(x: NoSuch): pass\nf.__annotations__") == "{'x': 'NoSuch'}"


@pytest.mark.skipif(not have("pandas"), reason="python3-pandas is not installed")
def test_data_frames(python):
    code = "import pandas as pd\npd.DataFrame({'a': [1, 2, None], 'b': ['x', 'y', 'z']})"
    [result] = python.check(code)["results"]
    assert result["data"] == {"a": [1.0, 2.0, None], "b": ["x", "y", "z"]}
    assert "<table" in result["html"] and "x" in result["text"]
    [result] = python.check("pd.DataFrame({'n': range(5000)})")["results"]
    assert result["truncated"] and result["data"]["n"] == list(range(1000))
    [result] = python.check("pd.Series([1, 2], name='s')")["results"]
    assert result["data"] == {"s": [1, 2]}
    [result] = python.check("pd.DataFrame([[1, 2]], columns=['c', 'c'])")["results"]
    assert result["data"] == {"c": [1], "c.2": [2]}


@pytest.mark.slow
@pytest.mark.skipif(not have("matplotlib"), reason="python3-matplotlib is not installed")
def test_figures(python):
    context = python
    context.check("import matplotlib.pyplot as plt", timeout_ms=120000)  # makes a cache of all fonts
    answer = context.check("print('a')\nplt.plot([1, 2])\nplt.show()\nplt.figure()\nplt.plot([3])\nNone")
    images = [base64.b64decode(r["png"]) for r in answer["results"]]
    assert len(images) == 2 and all(image.startswith(b"\x89PNG\r\n") for image in images)
    assert answer["stderr"] == ""
    assert context.check("plt.get_fignums()")["results"][0]["text"] == "[]"
    [result] = context.check("fig, ax = plt.subplots()\nax.plot([1])\nfig")["results"]
    assert result["main"] and base64.b64decode(result["png"]).startswith(b"\x89PNG")


CHARTS = {
    "line": ("plt.plot([1, 2], [3, 4], label='up'); plt.plot(['2', '1'], [5, 6])\nplt.xlabel('Time (s)'); plt.title('T')",
             lambda c: (c["title"], c["x_label"], c["x_unit"], c["y_label"], c["elements"][0]["label"]) == (
                 "T", "Time (s)", "s", None, "up") and len(c["elements"]) == 2 and len(c["y_ticks"]) == len(c["y_tick_labels"])),
    "scatter": ("plt.scatter([1, 2], [3, 4]); plt.yscale('log')",
                lambda c: c["elements"][0]["points"] == [[1.0, 3.0], [2.0, 4.0]] and c["y_scale"] == "log"),
    "bar": ("plt.bar(['a', 'b'], [1, 2], label='g')",
            lambda c: c["elements"] == [{"label": "a", "group": "g", "value": 1.0}, {"label": "b", "group": "g", "value": 2.0}]),
    "pie": ("plt.pie([1, 3], labels=['x', 'y'])",
            lambda c: [(e["label"], round(e["angle"]), e["radius"]) for e in c["elements"]] == [("x", 90, 1.0), ("y", 270, 1.0)]),
    "box_and_whisker": ("plt.boxplot([[1, 2, 3, 4, 10]])",
                        lambda c: c["elements"] == [{"label": "1", "min": 1.0, "first_quartile": 2.0, "median": 3.0,
                                                     "third_quartile": 4.0, "max": 4.0, "outliers": [10.0]}]),
    "superchart": ("f, (a, b) = plt.subplots(1, 2); f.suptitle('both'); a.plot([1]); b.barh(['z'], [2])",
                   lambda c: c["title"] == "both" and [e["type"] for e in c["elements"]] == ["line", "bar"]),
    "unknown": ("plt.imshow([[1, 2], [3, 4]])", lambda c: c["elements"] == []),
}


@pytest.mark.slow
@pytest.mark.skipif(not have("matplotlib"), reason="python3-matplotlib is not installed")
def test_charts(python):
    context = python
    context.check("import datetime, matplotlib.pyplot as plt", timeout_ms=120000)
    for kind, (code, fits) in CHARTS.items():
        [result] = context.check(code + "\nplt.show()")["results"]
        assert result["chart"]["type"] == kind and fits(result["chart"]), result["chart"]
    [result] = context.check("plt.plot([datetime.datetime(2024, 1, 2)], [1])\nNone")["results"]
    assert result["chart"]["x_scale"] == "datetime" and result["chart"]["elements"][0]["points"] == [["2024-01-02T00:00:00", 1.0]]


# ---- JavaScript ------------------------------------------------------------


def test_js_state_persists(js):
    js.check("const a = 1; let b = 2; var c = 3; class K { m() { return a + b + c } }; function f() { return 7 }")
    assert js.text("new K().m() + f()") == "13"
    js.check("const a = 10")  # again, as an agent that tries once more does
    assert js.text("a") == "10"
    assert js.text("_ + 1") == "11"


def test_js_output_and_results(js):
    answer = js.check("console.log('out', {a: 1}); console.error('err'); process.stdout.write('raw')")
    assert (answer["stdout"], answer["stderr"]) == ("out { a: 1 }\nraw", "err\n")
    assert js.text("({a: [1, {b: 'x'}], m: new Map([[1, 2]])})") == "{ a: [ 1, { b: 'x' } ], m: Map(1) { 1 => 2 } }"
    assert js.text("'text'") == "'text'" and js.text("null") == "null" and js.text("10n ** 20n") == f"{10 ** 20}n"
    assert js.check("undefined")["results"] == [] and js.check("let q = 5")["results"] == []


def test_js_top_level_await(js):
    assert js.text("await new Promise((done) => setTimeout(() => done(6 * 7), 20))") == "42"
    js.check("const w = await Promise.resolve(5)")
    assert js.text("w") == "5"


def test_js_modules(js):
    assert js.text("require('path').join('a', 'b')") == "'a/b'"
    js.check("import fs, { readFileSync as rf } from 'fs';\nimport * as path from \"node:path\";")
    assert js.text("[typeof fs.openSync, typeof rf, path.sep]") == "[ 'function', 'function', '/' ]"
    assert js.text("(await import('node:os')).EOL") == "'\\n'"
    assert js.text("\"import('x')\"") == "\"import('x')\""
    js.check("require('fs').writeFileSync('/tmp/own.mjs', 'export default 9; export const x = 1')")
    assert js.text("import nine, { x as one } from '/tmp/own.mjs'; nine + one") == "10"


def test_js_errors(js):
    error = js.error("function g() {\n  throw new TypeError('bad')\n}\ng()")
    assert (error["name"], error["value"]) == ("TypeError", "bad")
    assert ":2:9" in error["traceback"] and ":4:1" in error["traceback"]
    assert "inspector" not in error["traceback"] and "paddock" not in error["traceback"]
    error = js.error("let ok = 1;\nlet = = 3")
    assert error["name"] == "SyntaxError" and ":2:" in error["traceback"] and "let = = 3" in error["traceback"]
    assert js.error("await Promise.reject(new RangeError('later'))")["name"] == "RangeError"
    assert js.error("throw {not: 'an error'}")["value"] == "{ not: 'an error' }"


def test_js_exit_and_uncaught_do_not_end_it(js):
    js.check("var kept = 1")
    assert js.error("process.exit(3)")["name"] == "ProcessExit"
    answer = js.check("setTimeout(() => { throw new Error('loose') }, 5); await new Promise((d) => setTimeout(d, 50))")
    assert "loose" in answer["stderr"]
    assert js.text("kept") == "1"


def test_js_display(js):
    answer = js.check("display({a: 1}); display.html('<b>x</b>'); display.png(Buffer.from('P')); "
                      "display.json({n: [1, NaN]}); 'end'")
    assert [r.get("text", r.get("html", r.get("png", r.get("json")))) for r in answer["results"]] == [
        "{ a: 1 }", "<b>x</b>", "UA==", {"n": [1, None]}, "'end'"]
    [result] = js.check("({[Symbol.for('Jupyter.display')]: () => ({'text/html': '<i>', 'text/plain': 't'})})")["results"]
    assert (result["html"], result["text"]) == ("<i>", "t")


def test_js_large_source(js):
    assert js.text("'" + "a" * (2 << 20) + "'.length") == str(2 << 20)


# ---- bash ------------------------------------------------------------------


def test_bash_state_persists(bash):
    bash.check("x=5; declare -A m=([k]=v); cd /tmp; f() { echo \"f $1\"; }; shopt -s expand_aliases; alias hi='echo hi'")
    assert bash.out("echo $x ${m[k]} $PWD; f 3; hi") == "5 v /tmp\nf 3\nhi\n"


def test_bash_streams_and_status(bash):
    answer = bash.execute("echo out; echo err >&2; (exit 7)")
    assert (answer["stdout"], answer["stderr"]) == ("out\n", "err\n")
    assert (answer["error"]["name"], answer["error"]["value"]) == ("ExitStatus", "7")
    assert bash.out("echo $?; cat; read x; echo \"ü $?\"") .endswith("ü 1\n")
    assert bash.error("echo (")["value"] == "2"
    assert bash.check("echo again")["execution_count"] > 3


def test_bash_cannot_reach_the_control_channel(bash):
    assert bash.out("ls /proc/self/fd | grep -c '25[01]'; true") == "0\n"


def test_bash_exit(box):
    context = make(box, "bash")
    context.check("x=1")
    answer = context.execute("exit 3")
    assert answer["state_lost"] and answer["error"]["name"] == "InterpreterDied" and "3" in answer["error"]["value"]
    assert context.check("echo \"[$x]\"")["stdout"] == "[]\n"


def test_bash_break_and_traps_do_not_end_it(bash):
    assert bash.out("kept=1; echo a; break; echo no") == "a\n"
    assert bash.out("echo b; continue; echo no") == "b\n"
    assert bash.check("trap - INT; true")["stdout"] == ""
    assert bash.out("echo $kept") == "1\n"


def test_bash_large_source(bash):
    assert bash.out(f"x={'a' * (2 << 20)}; echo ${{#x}}") == f"{2 << 20}\n"


# ---- interrupt, time limit, death, restart ---------------------------------

SLEEPS = {"python": "print('go', flush=True)\nimport time\ntime.sleep(100)",
          "javascript": "console.log('go'); await new Promise(() => {})",
          "bash": "echo go; sleep 100; echo no"}
SPINS = {"python": "print('go', flush=True)\nwhile True: pass", "javascript": "console.log('go'); for (;;);",
         "bash": "echo go; while :; do :; done; echo no"}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("codes", [SLEEPS, SPINS], ids=["sleeps", "spins"])
def test_interrupt(box, daemon, language, codes):
    context = make(box, language)
    context.check({"python": "x = 1", "javascript": "var x = 1", "bash": "x=1"}[language])
    stream = events(box.client, context.path + "/execute", {"code": codes[language]})
    assert next(stream)[0] == "start"
    assert next(stream) == ("stdout", {"offset": 0, "data": "go\n", "encoding": "utf-8"})
    other = context.with_client(daemon.client())
    assert other.post("interrupt")["id"] == context.id
    rest = list(stream)
    assert [kind for kind, _ in rest] == ["error", "end"], rest
    name = {"python": "KeyboardInterrupt", "javascript": "Interrupted", "bash": "ExitStatus"}[language]
    assert rest[0][1]["name"] == name
    assert not rest[1][1]["state_lost"] and not rest[1][1]["timed_out"]
    show = {"python": "print(x)", "javascript": "console.log(x)", "bash": "echo $x"}[language]
    assert context.check(show)["stdout"] == "1\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_interrupts_are_not_lost(box, daemon, language):
    """At whatever moment they come: in the driver's code, in the user's, or between."""
    context = make(box, language)
    other = context.with_client(daemon.client())
    for i in range(20):
        running = paddock.Background(context.execute, SLEEPS[language] if i % 2 else SPINS[language], timeout_ms=20000)
        paddock.until(lambda: other.box.client.get(context.path).json()["busy"], "it runs")
        time.sleep(i / 2000)
        other.post("interrupt")
        answer = running.result()
        assert answer["error"] and not answer["timed_out"] and not answer["state_lost"], answer
    assert context.check("1" if language != "bash" else "true")["execution_count"] == 21


@pytest.mark.parametrize("language,code", [
    ("python", "while True: display('x' * 500000)"),
    ("javascript", "for (;;) display.html('x'.repeat(500000))"),
])
def test_interrupt_within_an_event(box, daemon, language, code):
    context = make(box, language)
    for _ in range(5):
        stream = events(box.client, context.path + "/execute", {"code": code})
        assert [next(stream)[0], next(stream)[0]] == ["start", "result"]
        context.with_client(daemon.client()).post("interrupt")
        kinds = [kind for kind, _ in stream]
        assert kinds[-2:] == ["error", "end"] and set(kinds[:-2]) <= {"result"}
    assert context.check("1")["execution_count"] == 6


def test_interrupt_of_await(box, daemon):
    context = make(box, "python")
    stream = events(box.client, context.path + "/execute",
                    {"code": "import asyncio\nprint('go')\nawait asyncio.sleep(100)"})
    assert [next(stream)[0], next(stream)[0]] == ["start", "stdout"]
    context.with_client(daemon.client()).post("interrupt")
    assert [kind for kind, _ in stream] == ["error", "end"]
    assert context.text("await asyncio.sleep(0, 5)") == "5"


@pytest.mark.parametrize("language", LANGUAGES)
def test_interrupt_when_idle_is_nothing(box, language):
    context = make(box, language)
    context.check("1" if language != "bash" else "true")
    for _ in range(3):
        assert context.post("interrupt")["busy"] is False
    assert context.check("1" if language != "bash" else "true")["execution_count"] == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_time_limit_interrupts(box, language):
    context = make(box, language)
    context.check({"python": "x = 1", "javascript": "var x = 1", "bash": "x=1"}[language])
    answer = paddock.given_time(lambda limit: context.execute(SLEEPS[language], timeout_ms=limit), lambda answer: answer["stdout"], 500)
    assert answer["timed_out"] and not answer["state_lost"] and answer["error"] and answer["stdout"] == "go\n"
    assert 499 <= answer["duration_ms"] < 60_000
    show = {"python": "print(x)", "javascript": "console.log(x)", "bash": "echo $x"}[language]
    assert context.check(show)["stdout"] == "1\n"


@pytest.mark.slow
def test_time_limit_kills_what_does_not_listen(box):
    context = make(box, "python")
    context.check("import signal, subprocess, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
                  "child = subprocess.Popen(['sleep', '1234'])")
    answer = context.execute("while True: time.sleep(1)", timeout_ms=200)
    assert answer["timed_out"] and answer["state_lost"] and answer["error"]["name"] == "Timeout"
    assert 2100 <= answer["duration_ms"] < 60_000
    assert "1234" not in box.check("ps -eo args", user="root")
    assert context.check("1")["execution_count"] == 1


def test_bad_time_limits(python):
    assert python.try_execute("1", timeout_ms=0).status == 400
    assert python.try_execute("1", timeout_ms=10 ** 9).status == 400


@pytest.mark.parametrize("code,why", [
    ("import os; print('last', flush=True); os._exit(9)", "status 9"),
    ("import ctypes; print('last', flush=True); ctypes.string_at(0)", "SIGSEGV"),
    ("import os; print('last', flush=True); os.kill(os.getpid(), 9)", "SIGKILL"),
])
def test_death(box, code, why):
    context = make(box, "python")
    context.check("x = 1")
    answer = context.execute(code)
    assert answer["state_lost"] and answer["stdout"] == "last\n"
    assert answer["error"]["name"] == "InterpreterDied" and why in answer["error"]["value"]
    answer = context.execute("x")
    assert answer["execution_count"] == 1 and answer["error"]["name"] == "NameError"


def test_death_of_an_idle_one(box):
    context = make(box, "python")
    pid = context.document["pid"]
    context.check("x = 1")
    box.check(f"kill -9 {pid}")
    answer = paddock.until(lambda: (lambda a: a if a["execution_count"] == 1 else None)(context.execute("1")),
                           "a new interpreter")
    assert answer["error"] is None
    assert box.client.get(context.path).json()["pid"] not in (pid, None)


def test_restart(box, daemon):
    context = make(box, "python")
    context.check("x = 1")
    stream = events(box.client, context.path + "/execute", {"code": SLEEPS["python"]})
    assert [next(stream)[0], next(stream)[0]] == ["start", "stdout"]
    other = context.with_client(daemon.client())
    after = other.post("restart")
    assert after["id"] == context.id and after["pid"] != context.document["pid"]
    rest = list(stream)
    assert [kind for kind, _ in rest] == ["error", "end"]
    assert rest[0][1]["name"] == "Restarted" and rest[1][1]["state_lost"]
    answer = context.execute("x")
    assert answer["error"]["name"] == "NameError" and answer["execution_count"] == 1


def test_removal_ends_what_runs_and_waits(box, daemon):
    context = make(box, "python")
    stream = events(box.client, context.path + "/execute", {"code": SLEEPS["python"]})
    assert [next(stream)[0], next(stream)[0]] == ["start", "stdout"]
    waiting = paddock.Background(context.with_client(daemon.client()).try_execute, "1")
    client = daemon.client()
    paddock.until(lambda: client.get(context.path).json()["queued"] == 1, "one waits")
    assert client.delete(context.path).status == 204
    assert [kind for kind, _ in stream] == ["error", "end"]
    assert waiting.result().status == 410


@pytest.mark.parametrize("language,code", [
    ("python", "import os; os.closerange(3, 256)"),
    ("javascript", "require('fs').closeSync(251)"),
    ("bash", "for i in {3..255}; do eval \"exec $i>&-\"; done"),
    ("python", "import os; os.execvp('sh', ['sh', '-c', 'exit 7'])"),
    ("javascript", "process.kill(process.pid, 'SIGKILL'); for (;;);"),
    ("bash", "exec sh -c 'exit 7'"),
], ids=["python-closes", "js-closes", "bash-closes", "python-execs", "js-kills", "bash-execs"])
def test_code_that_takes_its_interpreter_along(box, language, code):
    context = make(box, language)
    answer = context.execute(code, timeout_ms=20000)
    assert answer["error"]["name"] == "InterpreterDied" and answer["state_lost"] and not answer["timed_out"]
    show = {"python": "print(1)", "javascript": "console.log(1)", "bash": "echo 1"}[language]
    answer = context.check(show)
    assert (answer["stdout"], answer["execution_count"]) == ("1\n", 1)


def test_js_prints_after_an_interrupt_within_a_print(box, daemon):
    context = make(box, "javascript")
    other = context.with_client(daemon.client())
    for i in range(5):
        stream = events(box.client, context.path + "/execute", {"code": "for (;;) console.log('x'.repeat(1000))"})
        assert [next(stream)[0], next(stream)[0]] == ["start", "stdout"]
        other.post("interrupt")
        assert [kind for kind, _ in stream if kind != "stdout"] == ["error", "end"]
        assert context.out(f"console.log({i})").endswith(f"{i}\n")


# ---- order, streams, clients that leave ------------------------------------


def waits_for(path):
    return f"import os, time\nwhile not os.path.exists({path!r}): time.sleep(0.01)\n"


def test_executions_are_queued_in_order(box, daemon):
    context = make(box, "python")
    context.check("done = []")
    first = paddock.Background(context.with_client(daemon.client()).check, waits_for("/tmp/go") + "done.append(0)")
    paddock.until(lambda: box.client.get(context.path).json()["busy"], "the first runs")
    others = []
    for i in range(1, 5):
        others.append(paddock.Background(context.with_client(daemon.client()).check, f"done.append({i})"))
        paddock.until(lambda: box.client.get(context.path).json()["queued"] == i or None, f"{i} wait")
    box.check("touch /tmp/go")
    for one in (first, *others):
        one.result()
    assert context.text("done") == "[0, 1, 2, 3, 4]"


@pytest.mark.parametrize("form", ["text/event-stream", "application/x-ndjson"])
def test_streaming(box, daemon, form):
    context = make(box, "python")
    code = "import sys\nprint('a')\ndisplay(1)\n" + waits_for("/tmp/1") + (
        "print('b', file=sys.stderr)\n") + waits_for("/tmp/2") + "print('ü')\n2"
    other, kinds = box.with_client(daemon.client()), []
    for kind, event in events(box.client, context.path + "/execute", {"code": code}, form):
        if kind == "result" and event["text"] == "1" or kind == "stderr":  # it comes while the code runs
            other.check(f"touch /tmp/{event.get('text', 2)}")
        kinds.append((kind, event.get("data", event.get("text"))))
        if kind == "start":
            assert (event["context"], event["language"]) == (context.id, "python")
        if kind == "end":
            assert event["execution_count"] == 1 and not event["state_lost"] and event["duration_ms"] > 10
    assert kinds == [("start", None), ("stdout", "a\n"), ("result", "1"), ("stderr", "b\n"), ("stdout", "ü\n"),
                     ("result", "2"), ("end", None)]


def test_streamed_error(box):
    got = list(events(box.client, box.path + "/execute", {"code": "1/0"}, "text/event-stream"))
    assert [kind for kind, _ in got] == ["start", "error", "end"]
    assert got[1][1]["name"] == "ZeroDivisionError" and "1/0" in got[1][1]["traceback"]


@pytest.mark.slow
def test_streamed_output_has_no_limit_and_waits_for_its_reader(box, daemon):
    context = make(box, "python")
    size, got = 64 << 20, 0
    code = f"import sys\nfor _ in range({size >> 20}): sys.stdout.write('x' * (1 << 20))\n"
    stream = events(box.client, context.path + "/execute", {"code": code})
    next(stream)
    time.sleep(0.5)
    daemon_kb = paddock.rss_kb(daemon.api_pid())
    for kind, event in stream:
        if kind == "stdout":
            assert event["offset"] == got
            got += len(event["data"])
    assert got == size and kind == "end" and not event["truncated"]
    assert daemon_kb < 64 << 10


def test_a_client_that_leaves(box, daemon):
    context = make(box, "python")
    client = daemon.client()
    stream = events(client, context.path + "/execute",
                    {"code": "print('go', flush=True)\nimport time; time.sleep(0.5); x = 'went on'"})
    assert [next(stream)[0], next(stream)[0]] == ["start", "stdout"]
    client.close()
    del stream
    assert context.text("x") == "'went on'"


def test_a_client_that_leaves_and_takes_its_code_along(box, daemon):
    context = make(box, "python")
    client = daemon.client()
    response = client.start("POST", context.path + "/execute",
                            json.dumps({"code": "x = 1\nprint('go', flush=True)\nimport time; time.sleep(100); x = 2",
                                        "kill_on_disconnect": True}).encode(),
                            {"Content-Type": "application/json", "Accept": "application/x-ndjson"})
    assert b"start" in response.readline() and b"go" in response.readline()
    response.close()
    client.close()
    began = time.monotonic()
    assert context.text("x") == "1"
    assert time.monotonic() - began < 60


def test_nobody_forges_an_end(box):
    context = make(box, "python")
    code = "import os, json\nos.write(251, b'garbage\\n' + b'{\"id\":1,\"type\":\"end\",\"count\":99}\\n' + " \
           "b'[1]\\n' + b'{\"id\":[],\"type\":{}}\\n' + b'\\xff\\0\\n')\nprint('real')"
    answer = context.check(code)
    assert answer["stdout"] == "real\n" and answer["execution_count"] == 1


def test_what_a_box_says_is_bounded(box):
    context = make(box, "python")
    answer = context.check("import os\nfor _ in range(40): os.write(251, b'x' * (1 << 20))\nos.write(251, b'\\n')\n5")
    assert answer["truncated"] and answer["results"][-1]["text"] == "5"


def test_many_small_executions(box):
    context = make(box, "python")
    for i in range(300):
        assert context.check(f"print({i}); {i}")["stdout"] == f"{i}\n"


# ---- the rest of the world -------------------------------------------------


def test_contexts_survive_a_restart_of_the_api(own_daemon):
    daemon = own_daemon().start()
    client = daemon.client()
    box = client.create()
    contexts = {language: make(box, language) for language in LANGUAGES}
    contexts["python"].check("x = 41")
    contexts["javascript"].check("let x = 41")
    contexts["bash"].check("x=41")
    daemon.kill_api()
    client.close()
    found = client.get(box.path + "/contexts").json()["contexts"]
    assert {c["language"]: c["id"] for c in found} == {k: c.id for k, c in contexts.items()}
    assert contexts["python"].text("x + 1") == "42"
    assert contexts["javascript"].text("x + 1") == "42"
    assert contexts["bash"].out("echo $((x + 1))") == "42\n"
    assert contexts["python"].check("1")["execution_count"] == 3
    contexts["python"].post("restart")
    assert contexts["python"].error("x")["name"] == "NameError"


def test_a_box_that_was_stopped(box):
    context = make(box, "python", env={"A": "1"})
    context.check("x = 1")
    assert box.client.post(box.path + "/stop", {}).status in (200, 204)
    response = context.try_execute("1")
    assert response.status == 409 and response.code() == "wrong_state"
    assert box.client.post(box.path + "/start", {}).status in (200, 204)
    answer = context.check("import os; os.environ['A']")
    assert answer["execution_count"] == 1 and answer["results"][0]["text"] == "'1'"


def test_deleting_the_box_ends_executions(box, daemon):
    context = make(box, "python")
    stream = events(box.client, context.path + "/execute", {"code": SLEEPS["python"]})
    assert [next(stream)[0], next(stream)[0]] == ["start", "stdout"]
    box.with_client(daemon.client()).delete()
    kind, event = list(stream)[-1]
    assert (kind, event["code"]) == ("error", "wrong_state")


def test_a_language_that_the_box_does_not_have(box):
    assert box.exec("mkdir -p /workspace/none", user="root").exit_code == 0
    response = box.client.post(box.path + "/contexts", {"language": "javascript", "env": {"PATH": "/workspace/none"}})
    assert response.status == 501 and "node" in response.json()["error"]["message"]
