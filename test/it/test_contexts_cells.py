"""Python as people write it in cells: indents, magics, images, and the text of values and errors as IPython has it."""

import base64

import pytest

from test_contexts import have, make, place  # noqa: F401 - a fixture


@pytest.fixture(scope="module")
def python(place):  # noqa: F811
    return make(place, "python")


# ---- indents and magics ----------------------------------------------------


def test_the_indent_of_a_cell_goes(python):
    code = """

        import os
        total = 0
        for i in range(3):
            total += i

        total
    """
    assert python.text(code) == "3"
    assert python.out("\tx = 1\n\tif x:\n\t\tprint('tabs')") == "tabs\n"
    assert python.out("    # a comment\n    print('after')") == "after\n"
    assert python.out("    %%bash\n    echo in bash") == "in bash\n"
    assert python.error("    x = 1\n  y = 2\n")["name"] == "IndentationError"


def test_lines_of_an_indented_cell_are_counted_as_sent(python):
    assert "line 3" in python.error("\n    x = 1\n    1 / 0\n")["traceback"]


def test_strings_are_not_commands(python):
    code = 's = """\n!echo no\n%cd /\n"""\n!echo yes\nd = {\n  "k": 7\n  % 4,\n}\ns, d'
    answer = python.check(code)
    assert answer["stdout"] == "yes\n"
    assert answer["results"][0]["text"] == "('\\n!echo no\\n%cd /\\n', {'k': 3})"


def test_variables_in_commands(python):
    assert python.out("word = 'w'\n!echo $word {word * 2} {nosuch} ${HOME:+home} \\\n  joined") == "w ww {nosuch} home joined\n"
    assert python.text("!!printf 'a\\nb\\n'") == "['a', 'b']"
    assert python.text("where = %pwd\nwhere") == python.text("import os; os.getcwd()")


def test_pip_with_and_without_a_sign(python):
    for code in ("%pip --version", "!python3 -m pip --version", "pip --version"):
        answer = python.check(code)
        assert "pip" in answer["stdout"] + answer["stderr"]
    # … but a name that the code uses is Python's.
    assert python.text("pip = 3\npip -1") == "2"


def test_magics_that_measure(python):
    out = python.check("%%time\nsum(range(10))")
    assert out["results"][0]["text"] == "45" and "Wall time:" in out["stdout"]
    assert "per loop" in python.out("%timeit -n 5 -r 2 sum(range(10))")


def test_magics_of_files(place):  # noqa: F811
    context = make(place, "python", cwd="/tmp")
    context.check("%%writefile made.py\nvalue = 6 * 7\nprint('ran', value)")
    assert context.out("%run made.py") == "ran 42\n"
    assert context.text("value") == "42"
    assert context.out("%%capture kept\nprint('hidden')") == ""
    assert context.text("kept.stdout") == "'hidden\\n'"
    assert context.error("%%bash\nexit 3")["name"] == "CalledProcessError"
    assert "Return the number of items" in context.out("len?")
    assert context.error("%%nosuch\nx")["name"] == "UsageError"


def test_shown_by_magics(python):
    [result] = python.check("%%html\n<b>x</b>")["results"]
    assert result["html"] == "<b>x</b>"


# ---- values ----------------------------------------------------------------


@pytest.mark.parametrize("code, text", [
    ("list(range(40))", "[" + ",\n ".join(map(str, range(40))) + "]"),
    ("{'k': list(range(30)), 'b': 1}", "{'k': [" + ",\n  ".join(map(str, range(30))) + "],\n 'b': 1}"),
    ("{3, 1, 2}", "{1, 2, 3}"), ("(1,)", "(1,)"), ("[[], {}, ()]", "[[], {}, ()]"),
    ("int, ValueError", "(int, ValueError)"), ("class C: pass\nC", "__main__.C"),
    ("def f(a, *b, c=1): pass\nf", "<function __main__.f(a, *b, c=1)>"),
    ("['x' * 100, 'y']", f"['{'x' * 100}',\n 'y']"),
    ("list(range(2000))", "[" + ",\n ".join(map(str, range(1000))) + ",\n ...]"),
])
def test_text_of_values(python, code, text):
    assert python.text(code) == text


@pytest.mark.parametrize("code, value", [
    ("{'a': [1, None, 2.5, True, 'ü'], 3: (4,)}", {"a": [1, None, 2.5, True, "ü"], "3": [4]}),
    ("[1, float('nan')]", [1, None]),
    ("import datetime; [datetime.date(2024, 1, 2)]", ["2024-01-02"]),
    ("[]", []),
])
def test_dicts_and_lists_are_json_too(python, code, value):
    [result] = python.check(code)["results"]
    assert result["json"] == value


@pytest.mark.parametrize("code", ["[object()]", "{(1, 2): 3}", "a = []; a.append(a); a", "(1, 2)", "'text'", "5"])
def test_what_is_not_json(python, code):
    [result] = python.check(code)["results"]
    assert "json" not in result


def test_display_of_ipython(place):  # noqa: F811
    """Also where IPython is not installed."""
    context = make(place, "python")
    code = """
        from IPython.display import HTML, Image, JSON, Latex, Markdown, display
        display(HTML('<b>x</b>'), Markdown('*x*'), JSON({'a': 1}))
        display(Image(data=b'\\x89PNG'))
        Latex('$x$')
    """
    results = context.check(code)["results"]
    assert [set(r) - {"main", "truncated", "text"} for r in results] == [{"html"}, {"markdown"}, {"json"}, {"png"}, {"latex"}]
    assert results[2]["json"] == {"a": 1} and base64.b64decode(results[3]["png"]) == b"\x89PNG"
    assert context.out("get_ipython().system('echo by the shell')") == "by the shell\n"


@pytest.mark.skipif(not have("PIL"), reason="python3-pil is not installed")
def test_images(place):  # noqa: F811
    context = make(place, "python", cwd="/tmp")
    code = "    from PIL import Image\n    image = Image.new('RGB', (3, 2), 'red')\n"
    for last in ("image.show()", "image.save('shown.png')", "image"):
        answer = context.check(f"{code}    {last}")
        [result] = answer["results"]
        assert base64.b64decode(result["png"]).startswith(b"\x89PNG") and answer["stderr"] == ""
    assert context.text("Image.open('shown.png').size") == "(3, 2)"
    assert context.check("import io; image.save(io.BytesIO(), 'PNG')")["results"] == [], "only what has a name"


@pytest.mark.skipif(not have("matplotlib"), reason="python3-matplotlib is not installed")
def test_numbers_of_charts(python):
    python.check("import datetime, matplotlib.pyplot as plt", timeout_ms=120000)

    def chart(code):
        [result] = python.check(f"{code}\nplt.show()")["results"]
        return result["chart"]

    pie = chart("plt.pie([90, 10], labels=['a', 'b'], startangle=90)")
    assert [e["angle"] for e in pie["elements"]] == [324, 36]
    assert [e["angle"] for e in chart("plt.pie([1, 1, 1])")["elements"]] == [120, 120, 120]
    box = chart("plt.boxplot([[1.1, 2.2, 3.3, 4.4, 10.5]], labels=['A'], patch_artist=True)")
    assert box["elements"] == [{"label": "A", "min": 1.1, "first_quartile": 2.2, "median": 3.3, "third_quartile": 4.4,
                                "max": 4.4, "outliers": [10.5]}]
    lying = chart("plt.barh(['u', 'v'], [3, 5]); plt.xlabel('n'); plt.ylabel('who')")
    assert (lying["x_label"], lying["y_label"]) == ("who", "n")
    assert lying["elements"] == [{"label": "u", "group": "Group 0", "value": 3}, {"label": "v", "group": "Group 0", "value": 5}]
    line = chart("plt.plot([datetime.date(2023, 9, 1)], [1])")
    assert line["elements"][0]["points"] == [["2023-09-01", 1]] and line["x_scale"] == "datetime"


# ---- errors ----------------------------------------------------------------


def test_traceback_of_a_cell(place):  # noqa: F811
    context = make(place, "python")
    context.check("def broken(n, *more):\n    # why\n    return 1 / n")
    assert context.error("x = 3\nbroken(0)\ny = 4")["traceback"] == """\
---------------------------------------------------------------------------
ZeroDivisionError                         Traceback (most recent call last)
Cell In[2], line 2
      1 x = 3
----> 2 broken(0)
      3 y = 4

Cell In[1], line 3, in broken(n, *more)
      1 def broken(n, *more):
      2     # why
----> 3     return 1 / n

ZeroDivisionError: division by zero"""


def test_traceback_of_libraries_and_of_recursion(python):
    trace = python.error("import json\njson.loads('{')")["traceback"]
    assert "/json/decoder.py:" in trace and "in JSONDecoder.decode(self, s, _w)" in trace and trace.splitlines()[-1].startswith("JSONDecodeError:")
    trace = python.error("def f(): f()\nf()")["traceback"]
    assert "skipping similar frames: f at line 1" in trace and len(trace) < 2000


def test_traceback_of_syntax_errors(place):  # noqa: F811
    error = make(place, "python").error("a = 1\nb = = 2")
    assert error["name"] == "SyntaxError"
    assert error["traceback"] == "  Cell In[1], line 2\n    b = = 2\n        ^\nSyntaxError: invalid syntax\n"


@pytest.mark.parametrize("code, why", [
    ("raise ValueError('a') from KeyError('b')", "direct cause"),
    ("try:\n    1 / 0\nexcept Exception:\n    raise ValueError('a')", "During handling")])
def test_traceback_of_chains(python, code, why):
    assert why in python.error(code)["traceback"]
