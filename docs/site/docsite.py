"""The documentation as a site: every page of nav.json as HTML with navigation, and what the search needs.

Links between documents become links of the site; one that leads nowhere is an error, and so is a document that is not in nav.json.
"""
import hashlib
import json
import posixpath
import re
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

import manual
import markdown
import reference
import settings
import yaml

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
FILES = {"etc/grafana/paddock.json": "paddock-grafana.json", "etc/paddock.yaml": "paddock.yaml", "api/wire.proto": "wire.proto"}  # that a page may link to
# What is shown for something that is not a page itself.
NEAR = {"README.md": "docs/README.md", "docs/design": "docs/design/attacks.md", "api/openapi.yaml": "api/index.md",
        "man/paddock.yaml.5": "src/config/config_schema.c"}
SETTINGS_FROM = ("src/config/config.h", "src/config/zones.h", "src/model/box_limits.h", "src/model/box_limits.def")  # besides their table
TEXT_MOST = 3000  # characters of a section that the search knows


class SiteError(Exception):
    """Where and what."""


@dataclass
class Doc:
    source: str  # its name in the repository; pages of the API have names of their own
    url: str
    section: str
    text: str
    label: str = ""
    title: str = ""
    page: object = None
    anchors: set = field(default_factory=set)


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def sources():
    """Every file that the site is made of."""
    found = [HERE / "nav.json", *HERE.glob("*.py"), *HERE.glob("docs.*"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md"),
             *ROOT.glob("docs/screenshots/*.png"), *(ROOT / name for name in FILES),
             *(ROOT / name for name in ("SECURITY.md", "CONTRIBUTING.md", "man/paddock.1", "man/paddock.yaml.5", "api/openapi.yaml",
                                        "src/config/config_schema.c", *SETTINGS_FROM,
                                        "sdk/python/README.md", "sdk/typescript/README.md"))]
    return sorted(set(found))


# ---- pages ----


def api_docs(section):
    document = yaml.load(read("api/openapi.yaml"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # the former is ten times as fast
    pages = reference.Reference(document).pages()
    lines = [f"- [{name}]({name}.md): {tag['description']}" for tag in document["tags"] for name in [tag["name"]] if name in pages]
    first = f"# API reference\n\n{document['info']['description']}\n## Groups\n\n" + "\n".join(lines) + \
        "\n- [schemas](schemas.md): the objects of requests and answers\n\nThe whole definition is at `/openapi.json` (OpenAPI 3.1).\n"
    first = first.replace("(docs/errors.md)", "([errors](../docs/errors.md))")
    yield Doc("api/index.md", "/docs/api", section, first, "Overview")
    for name, text in pages.items():
        yield Doc(f"api/{name}.md", f"/docs/api/{name}", section, text, name)


def entries(section, entry):
    source, label = entry["source"], entry.get("label", "")
    if source == "api/openapi.yaml":
        yield from api_docs(section)
        return
    if "*" in source:
        for path in sorted(ROOT.glob(source)):
            name = path.relative_to(ROOT).as_posix()
            yield Doc(name, "/" + name.removesuffix(".md"), section, read(name))
        return
    url = "/docs/" + entry["path"] if entry.get("path") else "/docs" if "path" in entry else "/" + source.removesuffix(".md")
    if source == "man/paddock.1":
        text = manual.markdown(read(source), source, "Command line")
    elif source == "src/config/config_schema.c":
        text = settings.markdown(read(source), [read(name) for name in SETTINGS_FROM if name.endswith(".h")], read("etc/paddock.yaml"),
                                 read("man/paddock.yaml.5"), read("src/model/box_limits.def"))
    else:
        text = read(source)
    yield Doc(source, url, section, text, label)


def load():
    docs = [doc for section in json.loads(read("docs/site/nav.json")) for entry in section["pages"] for doc in entries(section["title"], entry)]
    known = {doc.source for doc in docs}
    for path in (*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md")):
        if path.relative_to(ROOT).as_posix() not in known:
            raise SiteError(f"{path.relative_to(ROOT)} is not in docs/site/nav.json")
    return docs


class Site:
    def __init__(self):
        self.docs = load()
        self.by_source = {doc.source: doc for doc in self.docs}
        self.assets = {}  # name in the repository: address
        self.wanted = []  # (page, url, anchor) of links with an anchor
        for doc in self.docs:
            self.render(doc)
        for source, target, anchor in self.wanted:
            if anchor not in self.by_source[target].anchors:
                raise SiteError(f"{source}: {target} has no section #{anchor}")

    def place(self, doc, target):
        """The name in the repository that a relative link of a document means."""
        base = posixpath.dirname(doc.source)
        name = posixpath.normpath(posixpath.join(base, target))
        return NEAR.get(name, name)

    def link(self, doc, target):
        if re.match(r"https?://", target):
            return target
        if ":" in target.split("/")[0] or target.startswith("/"):
            raise markdown.MarkdownError(f"a link to {target} is not allowed")
        path, _, anchor = target.partition("#")
        name = self.place(doc, path) if path else doc.source
        if name in FILES:
            return self.asset(name)
        if name not in self.by_source:
            raise markdown.MarkdownError(f"a link to {target}, which is not part of the documentation")
        if anchor:
            self.wanted.append((doc.source, name, anchor))
        return (self.by_source[name].url if path else "") + (f"#{anchor}" if anchor else "")

    def asset(self, name):
        """The address of a file; pictures are named by what is in them and are kept by browsers."""
        if name not in self.assets:
            if not (ROOT / name).is_file():
                raise markdown.MarkdownError(f"there is no file {name}")
            path = ROOT / name
            digest = hashlib.sha256(path.read_bytes()).hexdigest()[:10]
            self.assets[name] = f"/docs/files/{FILES[name]}" if name in FILES else f"/docs/files/{path.stem}-{digest}{path.suffix}"
        return self.assets[name]

    def code(self, doc, words):
        """`docs/egress.md` in a text is a link, too."""
        target = self.by_source.get(words)
        return target.url if target and target is not doc else None

    def render(self, doc):
        doc.page = markdown.render(doc.text, doc.source, lambda target: self.link(doc, target), lambda target: self.asset(self.place(doc, target)),
                                   lambda words: self.code(doc, words))
        if not doc.page.sections or doc.page.sections[0].level != 1:
            raise SiteError(f"{doc.source} does not begin with a title")
        doc.title = doc.page.sections[0].title
        doc.label = doc.label or doc.title
        doc.anchors = {section.anchor for section in doc.page.sections}

    # ---- HTML ----

    def navigation(self, current):
        out, section = [], None
        for doc in self.docs:
            if doc.section != section:
                if section is not None:
                    out.append("</ul></details>\n")
                section = doc.section
                is_open = " open" if current and current.section == section or section == "Start" else ""
                out.append(f"<details{is_open}><summary>{escape(section)}</summary><ul>\n")
            here = ' aria-current="page"' if doc is current else ""
            out.append(f'<li><a href="{doc.url}"{here}>{escape(doc.label)}</a></li>\n')
        return "".join(out) + "</ul></details>\n"

    def contents(self, doc):
        parts = [section for section in doc.page.sections if section.level in (2, 3)]
        if len(parts) > 60:
            parts = [section for section in parts if section.level == 2]
        if len(parts) < 2:
            return ""
        items = "".join(f'<li class="level-{section.level}"><a href="#{escape(section.anchor)}">{escape(section.title)}</a></li>\n' for section in parts)
        return f'<nav class="contents" aria-label="On this page"><p>On this page</p><ul>\n{items}</ul></nav>\n'

    def turn(self, doc):
        at, out = self.docs.index(doc), []
        for step, words, side in ((-1, "Previous", "prev"), (1, "Next", "next")):
            if 0 <= at + step < len(self.docs):
                other = self.docs[at + step]
                out.append(f'<a class="{side}" rel="{side}" href="{other.url}"><span>{words}</span> {escape(other.title)}</a>\n')
        return f'<nav class="turn" aria-label="Previous and next page">{"".join(out)}</nav>\n'

    def frame(self, title, body, doc, names):
        template = (HERE / "docs.html").read_text(encoding="utf-8")
        parts = {"title": escape(title), "nav": self.navigation(doc), "body": body, "contents": self.contents(doc) if doc else "",
                 "turn": self.turn(doc) if doc else "", **names}
        return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], template)

    def index(self):
        """[[url, page, heading, text]…] for the search."""
        found = []
        for doc in self.docs:
            for section in doc.page.sections:
                words = re.sub(r"\s+", " ", " ".join(section.text)).strip()[:TEXT_MOST]
                found.append([doc.url + (f"#{section.anchor}" if section.level > 1 else ""), doc.title if doc.section == "API reference" else doc.label, section.title, words])
        return json.dumps(found, ensure_ascii=False, separators=(",", ":"))

    def files(self):
        """{address: (bytes, whether browsers may keep it for good)}"""
        out, names = {}, {}
        index = self.index().encode()
        for name, data in (("docs.css", (HERE / "docs.css").read_bytes()), ("docs.js", (HERE / "docs.js").read_bytes()), ("search.json", index)):
            stem, suffix = name.split(".")
            url = f"/docs/files/{stem}-{hashlib.sha256(data).hexdigest()[:10]}.{suffix}"
            out[url], names[stem if stem != "docs" else suffix] = (data, True), url
        for doc in self.docs:
            title = doc.title if doc.url == "/docs" else f"{doc.title} · Paddock"
            out[doc.url] = (self.frame(title, doc.page.html, doc, names).encode(), False)
        lost = "<h1>There is no such page</h1>\n<p>The navigation lists every page, and the search finds words.</p>\n"
        out["/docs/404"] = (self.frame("Not found · Paddock", lost, None, names).encode(), False)
        for name, url in self.assets.items():
            out[url] = ((ROOT / name).read_bytes(), name not in FILES)
        return out
