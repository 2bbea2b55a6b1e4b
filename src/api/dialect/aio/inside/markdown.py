# /v1/util/convert_to_markdown: a file, or what a URL leads to, as Markdown. What is fetched is fetched from here, so the
# sandbox's egress policy applies.
import base64
import csv
import html.parser
import io
import re
import shutil
import subprocess
import urllib.error
import urllib.parse
import urllib.request
import xml.etree.ElementTree as tree
import zipfile

INPUT = 32 << 20
BLOCKS = {"p", "div", "section", "article", "header", "footer", "main", "nav", "aside", "figure", "figcaption", "form", "address",
          "fieldset", "dl", "dd", "dt", "details", "summary"}
SILENT = {"script", "style", "head", "noscript", "template", "svg", "iframe", "object"}
MARKS = {"strong": "**", "b": "**", "em": "*", "i": "*", "del": "~~", "s": "~~"}


class Page(html.parser.HTMLParser):
    """HTML, event by event: text goes to the innermost open element that collects."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.out, self.silent, self.pre, self.lists, self.links, self.quote = [], 0, 0, [], [], 0
        self.rows, self.cell, self.title, self.in_title = None, None, "", False

    def put(self, text):
        (self.cell if self.cell is not None else self.out).append(text)

    def block(self):
        if self.cell is None:
            self.put("\n\n")

    def end_cell(self):
        if self.cell is not None:
            text, self.cell = "".join(self.cell), None
            self.rows[-1].append(text)

    def handle_starttag(self, tag, attributes):
        a = dict(attributes)
        if tag == "title":
            self.in_title = True
        if tag in SILENT:
            self.silent += 1
        if self.silent:
            return
        if re.fullmatch("h[1-6]", tag):
            self.block()
            self.put("#" * int(tag[1]) + " ")
        elif tag in BLOCKS:
            self.block()
        elif tag == "br":
            self.put("  \n" if self.cell is None else " ")
        elif tag == "hr":
            self.put("\n\n---\n\n")
        elif tag == "pre":
            self.pre += 1
            self.put("\n\n```\n")
        elif tag == "code" and not self.pre:
            self.put("`")
        elif tag in MARKS:
            self.put(MARKS[tag])
        elif tag == "a":
            self.links.append(a.get("href") or "")
            self.put("[" if self.links[-1] else "")
        elif tag == "img":
            self.put(f"![{a.get('alt') or ''}]({a.get('src') or ''})")
        elif tag in ("ul", "ol"):
            self.lists.append(0 if tag == "ol" else None)
            self.put("" if len(self.lists) > 1 else "\n\n")
        elif tag == "li":
            depth = max(len(self.lists) - 1, 0)
            number = self.lists and self.lists[-1] is not None
            if number:
                self.lists[-1] += 1
            self.put("\n" + "  " * depth + (f"{self.lists[-1]}. " if number else "- "))
        elif tag == "blockquote":
            self.quote += 1
            self.put("\n\n\x00")
        elif tag == "table":
            self.rows = []
        elif tag == "tr" and self.rows is not None:
            self.end_cell()
            self.rows.append([])
        elif tag in ("td", "th") and self.rows:
            self.end_cell()
            self.cell = []

    def handle_endtag(self, tag):
        if tag == "title":
            self.in_title = False
        if tag in SILENT:
            self.silent = max(self.silent - 1, 0)
        if self.silent:
            return
        if re.fullmatch("h[1-6]", tag) or tag in BLOCKS:
            self.block()
        elif tag == "pre" and self.pre:
            self.pre -= 1
            self.put("\n```\n\n")
        elif tag == "code" and not self.pre:
            self.put("`")
        elif tag in MARKS:
            self.put(MARKS[tag])
        elif tag == "a" and self.links:
            href = self.links.pop()
            self.put(f"]({href})" if href else "")
        elif tag in ("ul", "ol") and self.lists:
            self.lists.pop()
            self.put("\n" if self.lists else "\n\n")
        elif tag == "blockquote" and self.quote:
            self.quote -= 1
            self.put("\x01\n\n")
        elif tag in ("td", "th", "tr"):
            self.end_cell()
        elif tag == "table" and self.rows is not None:
            self.end_cell()
            rows, self.rows = self.rows, None
            self.put("\n\n" + table([r for r in rows if r]) + "\n\n")

    def handle_data(self, data):
        if self.in_title:
            self.title += data
        if self.silent:
            return
        self.put(data if self.pre else re.sub(r"\s+", " ", data))

    def text(self):
        text = "".join(self.out)
        while "\x00" in text:  # quotes, the innermost first
            before, _, rest = text.rpartition("\x00")
            inner, _, after = rest.partition("\x01")
            text = before + "\n".join("> " + line for line in tidy(inner).splitlines()) + after
        return text


def tidy(text):
    fenced = re.split(r"(```\n.*?\n```)", text, flags=re.S)
    for i in range(0, len(fenced), 2):
        lines = "\n".join(line.rstrip() + ("  " if line.strip() and line.endswith("  ") else "") for line in fenced[i].split("\n"))
        lines = re.sub(r"\n +(?!(?:-|\d+\.) )(?=\S)", "\n", lines)  # but the items of lists
        fenced[i] = re.sub(r"\n{3,}", "\n\n", lines)
    return re.sub(r"\n{3,}", "\n\n", "".join(fenced)).strip()


def table(rows):
    if not rows:
        return ""
    width = max(len(r) for r in rows)

    def line(cells):
        cells = [re.sub(r"\s+", " ", str(c)).strip().replace("|", "\\|") for c in cells]
        return "| " + " | ".join(cells + [""] * (width - len(cells))) + " |"

    return "\n".join([line(rows[0]), "|" + " --- |" * width] + [line(r) for r in rows[1:]])


def from_html(data, charset):
    page = Page()
    page.feed(data.decode(charset or "utf-8", errors="replace"))
    page.close()
    text = tidy(page.text())
    title = " ".join(page.title.split())
    return text if not title or title in text[:300] else f"# {title}\n\n{text}"


def from_csv(data, separator):
    rows = list(csv.reader(io.StringIO(data.decode("utf-8-sig", errors="replace")), delimiter=separator))
    return table([r for r in rows if r])


def from_json(data):
    return "```json\n" + json.dumps(json.loads(data), indent=2, ensure_ascii=False) + "\n```"


def from_notebook(data):
    parts = []
    for cell in json.loads(data).get("cells", []):
        text = "".join(cell.get("source", []))
        parts.append(text if cell.get("cell_type") == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(parts)


def member(z, name):
    if z.getinfo(name).file_size > INPUT:
        raise ValueError("the file is too large")
    root = tree.fromstring(z.read(name))
    return root


def local(element):
    return element.tag.rpartition("}")[2]


def text_of(element, wanted="t"):
    return "".join(e.text or "" for e in element.iter() if local(e) == wanted)


def from_word(z):
    parts = []
    body = next(e for e in member(z, "word/document.xml") if local(e) == "body")
    for one in body:
        if local(one) == "tbl":
            parts.append(table([[text_of(c) for c in row if local(c) == "tc"] for row in one if local(row) == "tr"]))
        text = text_of(one) if local(one) == "p" else ""
        style = next((v for e in one.iter() if local(e) == "pStyle" for k, v in e.attrib.items() if k.endswith("val")), "")
        heading = re.fullmatch(r"(?:Heading|berschrift|Titre)(\d)", style)
        listed = any(local(e) == "numPr" for e in one.iter())
        if text.strip():
            parts.append("#" * int(heading[1]) + " " + text if heading else "# " + text if style == "Title" else "- " + text if listed else text)
    return "\n\n".join(p for p in parts if p)


def from_excel(z):
    shared = []
    if "xl/sharedStrings.xml" in z.namelist():
        shared = [text_of(e) for e in member(z, "xl/sharedStrings.xml") if local(e) == "si"]
    names = [e.attrib.get("name", "") for e in member(z, "xl/workbook.xml").iter() if local(e) == "sheet"]
    sheets = sorted((n for n in z.namelist() if re.fullmatch(r"xl/worksheets/sheet\d+\.xml", n)), key=lambda n: int(re.search(r"\d+", n)[0]))
    parts = []
    for i, sheet in enumerate(sheets):
        rows = []
        for row in (e for e in member(z, sheet).iter() if local(e) == "row"):
            cells = {}
            for cell in (c for c in row if local(c) == "c"):
                letters = re.match("[A-Z]*", cell.attrib.get("r", ""))[0]
                column = 0
                for c in letters:
                    column = column * 26 + ord(c) - 64
                value = text_of(cell, "v") or text_of(cell)
                cells[min(column or len(cells) + 1, 500)] = shared[int(value)] if cell.attrib.get("t") == "s" and value else value
            rows.append([cells.get(n, "") for n in range(1, max(cells, default=0) + 1)])
        parts.append(f"## {names[i] if i < len(names) else sheet}\n\n" + table([r for r in rows if r]))
    return "\n\n".join(parts)


def from_slides(z):
    slides = sorted((n for n in z.namelist() if re.fullmatch(r"ppt/slides/slide\d+\.xml", n)), key=lambda n: int(re.search(r"\d+", n)[0]))
    parts = []
    for i, slide in enumerate(slides, 1):
        lines = [text_of(p) for p in member(z, slide).iter() if local(p) == "p"]
        parts.append(f"## Slide {i}\n\n" + "\n\n".join(line for line in lines if line.strip()))
    return "\n\n".join(parts)


def from_archive(data):
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        for name, read in (("word/document.xml", from_word), ("xl/workbook.xml", from_excel), ("ppt/presentation.xml", from_slides)):
            if name in z.namelist():
                return read(z)
        return "\n".join(f"- {n}" for n in z.namelist()[:10000])


def from_pdf(data):
    if not shutil.which("pdftotext"):
        refuse("PDF needs the program pdftotext (package poppler-utils), which this sandbox does not have")
    made = subprocess.run(["pdftotext", "-layout", "-", "-"], input=data, capture_output=True, timeout=60)
    if made.returncode:
        refuse("pdftotext: " + made.stderr.decode(errors="replace").strip()[:300])
    return made.stdout.decode("utf-8", errors="replace").replace("\f", "\n\n---\n\n").strip()


def fetch(uri):
    """The bytes, their type, charset and name."""
    parts = urllib.parse.urlsplit(uri)
    if parts.scheme in ("http", "https"):
        request = urllib.request.Request(uri, headers={"User-Agent": "paddock", "Accept": "text/html, text/*, */*"})
        try:
            with urllib.request.urlopen(request, timeout=20) as f:
                return f.read(INPUT + 1), f.headers.get_content_type(), f.headers.get_content_charset(), parts.path
        except urllib.error.HTTPError as e:
            refuse(f"{uri}: status {e.code}")
        except urllib.error.URLError as e:
            refuse(f"{uri}: {why(e.reason) if isinstance(e.reason, OSError) else e.reason}")
    if parts.scheme == "data":
        head, _, body = uri[5:].partition(",")
        raw = urllib.parse.unquote_to_bytes(body)
        kind = head.split(";")[0] or "text/plain"
        return base64.b64decode(raw, validate=True) if head.endswith(";base64") else raw, kind, None, ""
    if parts.scheme and parts.scheme != "file":
        refuse(f"the scheme {parts.scheme!r} is not supported: use a path, file, http, https or data")
    path = urllib.parse.unquote(parts.path) if parts.scheme else uri
    if os.path.isdir(path):
        refuse(f"{path}: Is a directory")
    with open(path, "rb") as f:
        return f.read(INPUT + 1), "", None, path


def convert(data, kind, charset, name):
    end = os.path.splitext(name)[1].lower()
    if data.startswith(b"%PDF-"):
        return from_pdf(data)
    if data.startswith(b"PK\x03\x04"):
        return from_archive(data)
    if kind in ("text/html", "application/xhtml+xml") or end in (".html", ".htm", ".xhtml") or re.match(rb"\s*(<!doctype html|<html)", data[:512], re.I):
        return from_html(data, charset)
    if b"\0" in data[:8192]:
        refuse(f"{kind or end or 'this file'} is no format that can become text here")
    if kind == "text/csv" or end == ".csv":
        return from_csv(data, ",")
    if kind == "text/tab-separated-values" or end == ".tsv":
        return from_csv(data, "\t")
    if end == ".ipynb":
        return from_notebook(data)
    if kind == "application/json" or end == ".json":
        return from_json(data)
    text = data.decode(charset or "utf-8", errors="replace")
    if end in (".xml", ".rss", ".atom") or kind.endswith("xml"):
        return f"```xml\n{text.strip()}\n```"
    return text


def main(uri):
    data, kind, charset, name = fetch(uri)
    if len(data) > INPUT:
        refuse(f"there are more than {INPUT >> 20} MiB")
    try:
        text = convert(data, kind, charset, name)
    except (zipfile.BadZipFile, tree.ParseError, csv.Error, LookupError, StopIteration, subprocess.TimeoutExpired) as e:
        refuse(f"the file cannot be read: {why(e)}")
    if len(text) > MOST:
        text = text[:MOST] + f"\n\n[{len(text) - MOST} characters are left out]"
    done(text)


run(main)
