"""What renders the documentation (docs/site): Markdown, manual pages, the table of settings, the definition of the API. Without a daemon."""

import html
import re
import shutil
import subprocess
import sys

import pytest

import paddock

sys.path.insert(0, str(paddock.ROOT / "docs" / "site"))

import manual  # noqa: E402
import markdown  # noqa: E402
import reference  # noqa: E402
import settings  # noqa: E402


def render(text, **options):
    return markdown.render(text, **options).html.strip()


# ---- Markdown ----

CODE = '<div class="code"><pre tabindex="0"><code{}>{}</code></pre></div>'
CASES = {
    "paragraph": ("one\ntwo\n\nthree", "<p>one\ntwo</p>\n<p>three</p>"),
    "hard break": ("one  \ntwo\\\nthree", "<p>one<br>\ntwo<br>\nthree</p>"),
    "escape": ("a < b & \"c\" > d 'e'", "<p>a &lt; b &amp; &quot;c&quot; &gt; d &#x27;e&#x27;</p>"),
    "tag is text": ("see <script>alert(1)</script>", "<p>see &lt;script&gt;alert(1)&lt;/script&gt;</p>"),
    "backslash": (r"\*a\* \`b\` \| \[c](d)", "<p>*a* `b` | [c](d)</p>"),
    "emphasis": ("*a* **b** _c_ __d__ ***", "<p><em>a</em> <strong>b</strong> <em>c</em> <strong>d</strong> ***</p>"),
    "nested emphasis": ("**a *b* `*c*`**", "<p><strong>a <em>b</em> <code>*c*</code></strong></p>"),
    "words with underscores": ("max_body_bytes and a * b * c", "<p>max_body_bytes and a * b * c</p>"),
    "code span": ("`a<b` ``c`d`` `` ` ``", "<p><code>a&lt;b</code> <code>c`d</code> <code>`</code></p>"),
    "unclosed code": ("a `b", "<p>a `b</p>"),
    "link": ("[a `b`](c.md#d)", '<p><a href="c.md#d">a <code>b</code></a></p>'),
    "link out": ("<https://a.example/?b&c>", '<p><a href="https://a.example/?b&amp;c" rel="noreferrer noopener">https://a.example/?b&amp;c</a></p>'),
    "brackets alone": ("[SANDBOX] and a[0]", "<p>[SANDBOX] and a[0]</p>"),
    "quotes in a link": ('[a](b"c)', '<p><a href="b&quot;c">a</a></p>'),
    "image": ("![a \"b\"](c.png)", '<p><img src="c.png" alt="a &quot;b&quot;" loading="lazy"></p>'),
    "rule": ("a\n\n---\n\nb", "<p>a</p>\n<hr>\n<p>b</p>"),
    "quote": ("> a\n> - b", "<blockquote>\n<p>a</p>\n<ul>\n<li>b</li>\n</ul>\n</blockquote>"),
    "tight list": ("- a\n- b\n  c", "<ul>\n<li>a</li>\n<li>b\nc</li>\n</ul>"),
    "loose list": ("- a\n\n- b", "<ul>\n<li><p>a</p></li>\n<li><p>b</p></li>\n</ul>"),
    "lazy line": ("- a\nb", "<ul>\n<li>a\nb</li>\n</ul>"),
    "nested list": ("- a\n  - b\n    - c\n- d", "<ul>\n<li>a\n<ul>\n<li>b\n<ul>\n<li>c</li>\n</ul></li>\n</ul></li>\n<li>d</li>\n</ul>"),
    "ordered list": ("3. a\n4. b", '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>'),
    "code in a list": ("- a\n\n      b\n\n- c", "<ul>\n<li><p>a</p>\n" + CODE.format("", "b") + "</li>\n<li><p>c</p></li>\n</ul>"),
    "fence in a list": ("1. a\n   ```sh\n   b\n     c\n   ```\n2. d", "<ol>\n<li>a\n" + CODE.format(' class="language-sh"', "b\n  c") + "</li>\n<li>d</li>\n</ol>"),
    "list ends a paragraph": ("a\n- b", "<p>a</p>\n<ul>\n<li>b</li>\n</ul>"),
    "a number does not": ("in\n2026. Yes", "<p>in\n2026. Yes</p>"),
    "fence": ("```sh\n<a> # b\n```", CODE.format(' class="language-sh"', '&lt;a&gt; <span class="comment"># b</span>')),
    "fence with ticks": ("````\n```\n````", CODE.format("", "```")),
    "indented code": ("    a\n\n    b\n\nc", CODE.format("", "a\n\nb") + "\n<p>c</p>"),
    "table": ("| a | b |\n|---|---|\n| `c\\|d` | e |", '<div class="table" tabindex="0">\n<table>\n<thead>\n<tr><th>a</th><th>b</th></tr>\n</thead>\n<tbody>\n'
              "<tr><td><code>c|d</code></td><td>e</td></tr>\n</tbody>\n</table>\n</div>"),
    "table without a head": ("| | |\n|---|---|\n| a | |", '<div class="table" tabindex="0">\n<table>\n<tbody>\n<tr><td>a</td><td></td></tr>\n</tbody>\n</table>\n</div>'),
}


@pytest.mark.parametrize("name", CASES)
def test_markdown(name):
    text, want = CASES[name]
    assert render(text) == want


def test_headings_have_anchors_and_their_text():
    page = markdown.render("# A `b`\n\nintro\n\n## It's *new*\n\none `two`\n\n## It's new\n\n```sh\nthree\n```\n\n### X {#own}\n\n| a |\n|---|\n| four |")
    assert [(s.level, s.title, s.anchor, s.text) for s in page.sections] == [
        (1, "A b", "a-b", ["intro"]), (2, "It's new", "its-new", ["one two"]), (2, "It's new", "its-new-1", ["three"]), (3, "X", "own", ["four"])]
    assert '<h2 id="its-new">It&#x27;s <em>new</em><a class="anchor" href="#its-new" aria-label="Link to this section">#</a></h2>' in page.html


@pytest.mark.parametrize("text, complaint", [("a\n\n```sh\nb", "3: a block without an end"), ("<div>\n", "1: raw HTML"), ("a\n<!-- b -->", "2: raw HTML"),
                                             ("| a | b |\n|---|---|\n| c |", "3: a row of 1 cells"), ("``` a b\n```", "1: a fence"), ("![a]", "1: an image"),
                                             ("# a {#x}\n\n# b {#x}", "3: the anchor x is taken")])
def test_markdown_errors(text, complaint):
    with pytest.raises(markdown.MarkdownError, match=re.escape(f"file.md:{complaint}")):
        render(text, name="file.md")


HOSTILE = ['<img src=x onerror=alert(1)>', '"><script>alert(1)</script>', "`<b>`", "[<i>](javascript:alert(1))", "![\"onload=\"x](a.png)", "**<u>**", "# <h1>",
           "| <td> |\n|---|\n| </td><script> |", "```<script>\n```", "```\n</code></pre><script>\n```", "> <q>", "- <li>", "&lt;script&gt;", "[a](b\"onclick=\"c)"]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_gets_through(text):
    """Every tag in the result is one of ours, with attributes of ours."""
    try:
        shown = render(text)
    except markdown.MarkdownError:
        return
    for tag in re.findall(r"<[^>]*>", shown):
        assert re.fullmatch(r'</?(p|a|code|pre|div|span|h[1-6]|ul|ol|li|table|thead|tbody|tr|th|td|em|strong|blockquote|img|hr|br)'
                            r'( (href|class|id|tabindex|src|alt|loading|rel|aria-label)="[^"<>]*")*>', tag), tag
    assert html.unescape(re.sub(r"<[^>]*>", "", shown)).count("<") <= text.count("<") + text.count("&lt;")


# ---- manual pages ----

MANUAL = r""".Dd today
.Dt X 1
.Os
.Sh NAME
.Nm x
.Nd does things
.Sh DESCRIPTION
Give
.Fl Fl name Ar WORD ,
.Fl v
or
.Pq Fl it .
Not *this* nor `that`;
.Ev HOME
is
.Ar HOST : Ns Ar PORT .
.Sh COMMANDS
.Ss Things
.Bl -tag -width Ds
.It Cm make Oo Fl f | Fl Fl force Oc Ar NAME Op Ar MORE
Make it.
.Pp
See
.Xr make 1 .
.Bl -tag -width Ds
.It Fl s , Fl Fl size Ar N Ns Op : Ns Cm ro
Its size.
.El
.It Cm rm
.It Cm ls Ar A ...
Both.
.El
.Bd -literal
a <b>
.Ed
"""


def test_manual_page():
    shown = manual.markdown(MANUAL, "x.1", "X")
    assert "Give `--name WORD`, `-v` or (`-it`). Not \\*this\\* nor \\`that\\`; `HOME` is `HOST:PORT`." in shown
    assert "#### `make`\n\n```usage\nx make [-f | --force] NAME [MORE]\n```\n\nMake it.\n\nSee `make(1)`.\n\n- `-s, --size N[:ro]`\n\n  Its size." in shown
    assert "#### `rm`, `ls`\n\n```usage\nx rm\nx ls A ...\n```\n\nBoth." in shown and "```text\na <b>\n```" in shown
    assert [tags for tags, _ in manual.items(MANUAL, "x.1", "COMMANDS")] == [["make [-f | --force] NAME [MORE]"], ["rm", "ls A ..."]]
    with pytest.raises(manual.ManualError, match="x.1:2: there is no macro Qq"):
        manual.markdown(".Dd today\n.Qq text\n", "x.1", "X")


# ---- settings ----


def test_settings_of_the_schema():
    schema = """#define MOST (UINT64_C(1) << 20)
static const struct json_field inner_fields[] = {
	{ "size", JSON_F_U64, 0, .min = 1,
	  .max = MOST }, /* a } and a { */
};
static const struct json_field config_fields[] = {
	{ "name", JSON_F_STRING, 0, .max = 3 * 4 },
	{ "inner", JSON_F_OBJECT, 0, .sub = &inner, .nullable = true },
};
"""
    sample = '# A comment.\n#name: "x"\n#inner:\n#  size: 5   # five\n'
    page = ".Sh SETTINGS\n.Bl -tag\n.It Sy name\nIts name.\n.It Sy inner.size\nHow large.\n.El\n"
    shown = settings.markdown(schema, [], sample, page)
    assert '| `name` | string | `"x"` | at most 12 bytes |' in shown and "| `inner.size` | integer | `5` | 1 to 1,048,576 |" in shown and "How large." in shown
    for bad, complaint in (((schema, [], sample, page.replace("inner.size", "inner.sizes")), "explains inner.sizes, which is no setting"),
                           ((schema, [], sample, page.replace(".It Sy inner.size\n", "")), "does not explain inner.size"),
                           ((schema, [], sample.replace("size", "sise"), page), "etc/paddock.yaml has no inner.size"),
                           ((schema.replace('{ "size", JSON', '{ "size", OTHER'), [], sample, page), "is not read as a whole")):
        with pytest.raises(settings.SettingsError, match=complaint):
            settings.markdown(*bad)


# ---- the API ----


def test_reference_of_a_definition():
    document = {"tags": [{"name": "things", "description": "All | of them."}], "paths": {"/v1/things/{id}": {
        "parameters": [{"name": "id", "in": "path", "required": True, "schema": {"type": "string", "pattern": "^(a|b)$"}}],
        "put": {"operationId": "putThing", "tags": ["things"], "summary": "Put a thing", "description": "It is `put`.",
                "requestBody": {"required": True, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}, "examples": {"one": {"value": {"a": 1}}}}}},
                "responses": {"200": {"description": "Done.", "content": {"application/json": {"schema": {"type": "object", "properties": {"ok": {"type": "boolean"}}}}}},
                              "default": {"description": "Not."}}, "x-codeSamples": [{"source": "curl x"}]}}},
        "components": {"schemas": {"Thing": {"type": "object", "required": ["a"], "properties": {
            "a": {"type": ["integer", "null"], "minimum": 1, "maximum": 9, "default": 3, "description": "How\n  many."}, "b": {"type": "object", "properties": {
                "c": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}}, "d": {"enum": ["x", "y", None]}}}}}}}}
    pages = reference.Reference(document).pages()
    text = pages["things"]
    assert "## Put a thing {#putThing}" in text and "PUT /v1/things/{id}" in text and "It is `put`." in text and "```sh\ncurl x\n```" in text
    assert r"| `id` (required) | path | string | Matches `^(a\|b)$`. |" in text
    assert "| `a` (required) | integer | How many. From 1 to 9. Default `3`. |" in text and '"a": 1' in text
    assert "| `b.c` | array of [Thing](schemas.md#thing) |  |" in text and "| `b.d` | any | One of `x`, `y`. |" in text
    assert "| `200` | `application/json`: object | Done. |" in text and "| `ok` | boolean |  |" in text and "| otherwise | no body | Not. |" in text
    assert "## Thing {#thing}" in pages["schemas"]
    markdown.render(text)


# ---- the site ----


@pytest.fixture
def copy(tmp_path):
    """A copy of what the site is made of."""
    for name in ("docs", "man", "api", "etc", "scripts"):
        shutil.copytree(paddock.ROOT / name, tmp_path / name)
    for name in ("SECURITY.md", "CONTRIBUTING.md", "src/config/config_schema.c", "src/config/config.h", "src/config/zones.h", "src/model/box_limits.h",
                 "src/model/box_limits.def", "sdk/python/README.md", "sdk/typescript/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(paddock.ROOT / name, tmp_path / name)
    return tmp_path


def check(place):
    return subprocess.run([place / "scripts" / "docs", "--check"], capture_output=True, text=True, timeout=60, check=False)


def test_site_is_whole(copy):
    done = check(copy)
    assert (done.returncode, done.stderr) == (0, ""), done


@pytest.mark.parametrize("add, complaint", [("[x](nothing.md)", "docs/mcp.md:{}: a link to nothing.md, which is not part of the documentation"),
                                            ("[x](e2b.md#nothing)", "docs/mcp.md: docs/e2b.md has no section #nothing"),
                                            ("[x](#nothing)", "docs/mcp.md: docs/mcp.md has no section #nothing"),
                                            ("[x](../src/api/main.c)", "a link to ../src/api/main.c"), ("[x](/etc/passwd)", "a link to /etc/passwd is not allowed"),
                                            ("[x](javascript:alert`1`)", "is not allowed"), ("![x](nothing.png)", "there is no file docs/nothing.png"),
                                            ("<b>bold</b>", "raw HTML")])
def test_what_leads_nowhere_fails_the_build(copy, add, complaint):
    file = copy / "docs" / "mcp.md"
    text = file.read_text()
    file.write_text(f"{text}\n{add}\n")
    done = check(copy)
    assert done.returncode == 1 and complaint.format(len(text.splitlines()) + 2) in done.stderr and len(done.stderr.splitlines()) == 1, done


def test_what_is_forgotten_fails_the_build(copy):
    (copy / "docs" / "new.md").write_text("# New\n")
    assert "docs/new.md is not in docs/site/nav.json" in check(copy).stderr
    (copy / "docs" / "new.md").unlink()
    schema = copy / "src/config/config_schema.c"
    text = schema.read_text()
    schema.write_text(text.replace('{ "listen", JSON_F_STRING', '{ "hidden", JSON_F_BOOL, 0 },\n\t{ "listen", JSON_F_STRING', 1))
    assert "paddock.yaml.5 does not explain hidden" in check(copy).stderr
