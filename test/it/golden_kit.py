"""Recordings of what the programs say, in test/it/golden: readable text, one file for each topic, compared word for word.

A recording is sections of text below titles. What differs from run to run and from machine to machine (ids, times, keys, figures)
is replaced by a word in <>, so that a difference is one of behaviour. `PADDOCK_GOLDEN=write pytest test/it/test_golden*.py` writes
the recordings anew; without it, a difference fails.
"""

import contextlib
import difflib
import json
import os
import re
import sqlite3
from pathlib import Path

PLACE = Path(__file__).parent / "golden"
WRITING = os.environ.get("PADDOCK_GOLDEN") == "write"
TITLE = "=== "
SHORT = 150  # a document up to this length stands on one line

# ---- what differs from run to run -----------------------------------------

PATTERNS = [(re.compile(pattern), word) for pattern, word in (
    (r"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?", "<certificate>"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?", "<time>"),
    (r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", "<date>"),
    (r"\bpdk_\w{40}\b", "<key>"),
    (r"\bsha256:[0-9a-f]{64}\b", "<digest>"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
    (r"\b(?!0{20})[a-z0-9]{20}[0-9a-f]{64}\b", "<token>"),
    (r"\b(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{32,}\b", "<hex>"),
    (r"\b(?!0{20}|modelcontextprotocol)[a-z0-9]{20}\b", "<id>"),  # one in 670 has no digit
)]
# Members with figures of the machine or of the moment, whatever document they are in.
FIGURES = re.compile(r".*(?:duration|elapsed|uptime|_usec$|_ms$|^pid$|^ppid$|inode).*")


class Normal:
    """Takes away what differs. `words`: {text: its name}, such as a sandbox's id; `figures`: further members whose numbers differ."""

    def __init__(self, words=None, figures=None):
        self.words, self.figures = dict(words or {}), re.compile(figures) if figures else None

    def knows(self, name, text):
        self.words[text] = name

    def text(self, text):
        for word in sorted(self.words, key=len, reverse=True):
            text = text.replace(word, f"<{self.words[word]}>")
        for pattern, word in PATTERNS:
            text = pattern.sub(word, text)
        return text

    def document(self, value, member=""):
        if isinstance(value, dict):
            return {self.text(name): self.document(each, name) for name, each in value.items()}
        if isinstance(value, list):
            return [self.document(each, member) for each in value]
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            if FIGURES.fullmatch(member) or value and self.figures and self.figures.fullmatch(member):
                return "<number>"
        return value


def shape(value):
    """The types of a document, without its values; the members of a list, once each."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        kinds = []
        for each in map(shape, value):
            if each not in kinds:
                kinds.append(each)
        return sorted(kinds, key=json.dumps)
    return "null" if value is None else {bool: "boolean", int: "number", float: "number", str: "string"}[type(value)]


def written(document):
    """A JSON document as text, with its members in their order."""
    short = json.dumps(document, ensure_ascii=False)
    return short if len(short) <= SHORT else json.dumps(document, ensure_ascii=False, indent=1)


# ---- databases ------------------------------------------------------------

MAPS = {"env", "metadata"}  # whose members are the clients' own


def paths(document, at=""):
    """(path, type) of everything in a document; the members of a list are [], those of a map <name>."""
    if isinstance(document, dict) and document:
        for name, value in document.items():
            yield from paths(value, f"{at}.<name>" if at.rpartition(".")[2] in MAPS else f"{at}.{name}")
    elif isinstance(document, list) and document:
        for value in document:
            yield from paths(value, at + "[]")
    else:
        yield at.lstrip(".") or ".", json.dumps(shape(document))


def tables(file):
    """{table, index, trigger: its SQL, and what is in the JSON of its rows}"""
    found = {}
    with contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as db:
        for name, sql in db.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name").fetchall():
            documents = set()
            if sql.startswith("CREATE TABLE"):
                cursor = db.execute(f"SELECT * FROM {name}")
                columns = [column for column, *_ in cursor.description]
                documents = {f"{column}: {path} {kind}" for row in cursor for column, value in zip(columns, row)
                             if isinstance(value, str) and value[:1] in ("{", "[") for path, kind in paths(json.loads(value))}
            found[name] = "\n".join([re.sub(r"\s+", " ", sql), *sorted(documents)])
    return found


# ---- recordings -----------------------------------------------------------


def parse(text):
    """{title: text} of a recording."""
    found = {}
    for line in text.splitlines():
        if line.startswith(TITLE):
            title = line.removeprefix(TITLE)
            assert title not in found, f"{title!r} stands twice"
            found[title] = []
        elif found:
            found[title].append(line)
    return {title: "\n".join(lines).strip("\n") for title, lines in found.items()}


def render(sections, order=sorted):
    return "\n".join(f"{TITLE}{title}\n{sections[title]}\n" for title in order(sections))


def difference(recorded, seen):
    """What is different, for people; "" if nothing is."""
    out = [f"no longer there: {title}" for title in sorted(set(recorded) - set(seen))]
    out += [f"not recorded: {title}\n{seen[title]}" for title in sorted(set(seen) - set(recorded))]
    for title in sorted(set(seen) & set(recorded)):
        if recorded[title] != seen[title]:
            lines = difflib.unified_diff(recorded[title].splitlines(), seen[title].splitlines(), "recorded", "seen", lineterm="", n=2)
            out.append("\n".join([f"different: {title}", *lines]))
    return "\n".join(out)


def recorded(name):
    """{title: text} of a recording; nothing if it is being written for the first time."""
    path = PLACE / f"{name}.txt"
    return parse(path.read_text()) if path.exists() or not WRITING else {}


def compare(name, sections, order=sorted):
    """Fails where the recording `name` says something else than these sections, or writes it."""
    sections = {title: "\n".join(line.rstrip() for line in text.splitlines()).strip("\n") for title, text in sections.items()}
    clash = [title for title, text in sections.items() if "\n" in title or re.search(f"^{TITLE}", text, re.M)]
    assert not clash, f"cannot be a section: {clash}"
    if WRITING:
        PLACE.mkdir(exist_ok=True)
        (PLACE / f"{name}.txt").write_text(render(sections, order))
        return
    found = difference(recorded(name), sections)
    assert not found, f"test/it/golden/{name}.txt says something else (CONTRIBUTING.md says how to change it):\n{found}"


# ---- answers over HTTP ----------------------------------------------------

USUAL = {"server": "paddock", "x-request-id": "<id>", "content-type": "application/json"}
# Of the connection or the moment, or of the body's length, which differs with its figures.
UNTOLD = {"date", "connection", "keep-alive", "content-length", "transfer-encoding"}


def documents(body, kind):
    """The JSON documents in a body: (what they are in, documents), or None."""
    if kind.startswith("application/json"):
        return [json.loads(body)]
    return None


def body_text(body, kind, normal, only_shape=False):
    kind = kind.partition(";")[0]
    if not body:
        return ""
    if kind == "application/json":
        document = json.loads(body)
        return written(shape(document) if only_shape else normal.document(document))
    text = body.decode(errors="backslashreplace")
    if kind in ("application/x-ndjson", "text/event-stream"):
        lines = []
        for line in text.splitlines():
            head, brace, _ = line.partition("{")
            try:
                lines.append(head + written(normal.document(json.loads(line.removeprefix(head)))) if brace else normal.text(line))
            except ValueError:
                lines.append(normal.text(line))
        return "\n".join(lines)
    return normal.text(text)


def answer_text(answer, normal, only_shape=False, opaque=False):
    """An answer as a recording has it: its status, the headers that are not as usual, its body."""
    headers = {name: normal.text(value) for name, value in answer.headers.items() if name not in UNTOLD}
    if "etag" in headers:
        headers["etag"] = "<etag>"
    lines = [str(answer.status)]
    lines += [f"{name}: {value}" for name, value in sorted(headers.items()) if USUAL.get(name) != value]
    lines += [f"no {name}" for name in USUAL if name not in headers and not (name == "content-type" and not answer.body)]
    kind = answer.headers.get("content-type", "")
    body = "<a body>" if opaque and answer.body else body_text(answer.body, kind, normal, only_shape)
    return "\n".join([" | ".join(lines), *([body] if body else [])])
