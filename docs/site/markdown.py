"""Markdown to HTML, as much of CommonMark as the documents use, and strict: what it does not know is an error or text.

Headings (with anchors), paragraphs, fenced and indented code, lists in lists, tables, block quotes, rules; code spans, links,
images, emphasis. Everything is escaped. There is no raw HTML. `render` also returns the headings and the plain text below each,
which the search uses.
"""
import html
import re
from dataclasses import dataclass, field

FENCE = re.compile(r"( *)(`{3,})([\w-]*)\s*$")
HEADING = re.compile(r"(#{1,6}) +(.+?)(?: +\{#([\w.-]+)\})?\s*$")
ITEM = re.compile(r"( *)([-*]|\d{1,4}\.)( +)(?=\S)")
RULE = re.compile(r" {0,3}(-{3,}|\*{3,})\s*$")
DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
PLAIN = re.compile(r"[^\\`<!\[*_]+")  # what nothing begins with
ESCAPABLE = "\\`*_{}[]()#+-.!|<>"


class MarkdownError(Exception):
    """The line and what is wrong with it."""


@dataclass
class Section:
    """What stands below one heading, for the search and the contents."""
    level: int
    title: str
    anchor: str
    text: list = field(default_factory=list)


@dataclass
class Page:
    html: str
    sections: list
    links: list  # of every link: what the page's `link` was asked


def slug(text):
    """As GitHub makes anchors: the documents' links rely on it."""
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def escape(text):
    return html.escape(text, quote=True)


# ---- inline ----


class Inline:
    """One run of text. `link(target)` gives the address to write, `image(target)` likewise; `code(text)` an address for a code span
    that names something, or None. Each raises MarkdownError for what does not exist."""

    def __init__(self, link, image, code):
        self.link, self.image, self.code = link, image, code

    def render(self, text):
        """(HTML, plain text)"""
        out, plain, at = [], [], 0
        while at < len(text):
            run = PLAIN.match(text, at)
            if run:
                out.append(escape(run[0]))
                plain.append(run[0])
                at = run.end()
                continue
            piece = self.one(text, at)
            if piece is None:
                out.append(escape(text[at]))
                plain.append(text[at])
                at += 1
            else:
                shown, words, at = piece
                out.append(shown)
                plain.append(words)
        return "".join(out), "".join(plain)

    def one(self, text, at):
        """What begins at `at`: (HTML, plain text, where it ends), or None for a character like others."""
        c = text[at]
        if c == "\\" and at + 1 < len(text):
            if text[at + 1] in ESCAPABLE:
                return escape(text[at + 1]), text[at + 1], at + 2
            if text[at + 1] == "\n":
                return "<br>\n", "\n", at + 2
        if c == "`":
            return self.span(text, at)
        if c == "<":
            match = re.compile(r"<(https?://[^\s<>]+)>").match(text, at)
            return (self.anchor(match[1], escape(match[1])), match[1], match.end()) if match else None
        if c == "!" and text.startswith("![", at):
            return self.picture(text, at)
        if c == "[":
            return self.reference(text, at)
        if c in "*_":
            return self.emphasis(text, at)
        return None

    def span(self, text, at):
        ticks = re.compile(r"`+").match(text, at)[0]
        close = re.compile(rf"(?<!`){ticks}(?!`)").search(text, at + len(ticks))
        if not close:
            return escape(ticks), ticks, at + len(ticks)
        words = text[at + len(ticks):close.start()].replace("\n", " ")
        if len(words) > 2 and words[0] == words[-1] == " ":
            words = words[1:-1]
        shown = f"<code>{escape(words)}</code>"
        target = self.code(words)
        return (f'<a href="{escape(target)}">{shown}</a>' if target else shown), words, close.end()

    @staticmethod
    def bracket(text, at):
        """Behind the bracket that closes the one at `at`; -1: none does."""
        depth, i = 0, at
        while i < len(text):
            if text[i] == "\\":
                i += 1
            elif text[i] == "`":
                ticks = re.compile(r"`+").match(text, i)[0]
                close = text.find(ticks, i + len(ticks))
                i = (close if close > 0 else i) + len(ticks) - 1
            elif text[i] == "[":
                depth += 1
            elif text[i] == "]":
                depth -= 1
                if depth == 0:
                    return i + 1
            i += 1
        return -1

    def target(self, text, at):
        """(words in brackets, target, end) of `[words](target)` with the bracket at `at`."""
        end = self.bracket(text, at)
        match = re.compile(r"\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)").match(text, end) if end > 0 else None
        return (text[at + 1:end - 1], match[1], match.end()) if match else None

    def anchor(self, target, shown):
        address = self.link(target)
        outside = ' rel="noreferrer noopener"' if re.match(r"https?:", address) else ""
        return f'<a href="{escape(address)}"{outside}>{shown}</a>'

    def reference(self, text, at):
        found = self.target(text, at)
        if not found:
            return None
        shown, plain = Inline(self.link, self.image, lambda words: None).render(found[0])
        return self.anchor(found[1], shown), plain, found[2]

    def picture(self, text, at):
        found = self.target(text, at + 1)
        if not found:
            raise MarkdownError(f"an image without a target: {text[at:at + 40]!r}")
        return f'<img src="{escape(self.image(found[1]))}" alt="{escape(found[0])}" loading="lazy">', found[0], found[2]

    def emphasis(self, text, at):
        c = text[at]
        mark = c * 2 if text.startswith(c * 2, at) else c
        after, before = at + len(mark), text[at - 1] if at else " "
        if after >= len(text) or text[after].isspace() or c == "_" and before.isalnum():
            return escape(mark), mark, after
        i = after
        while i < len(text):
            if text[i] == "\\":
                i += 2
                continue
            if text[i] == "`":
                i = self.span(text, i)[2]
                continue
            if text.startswith(mark, i) and not text[i - 1].isspace() and i > after and \
                    not (c == "_" and text[i + len(mark):i + len(mark) + 1].isalnum()):
                shown, plain = self.render(text[after:i])
                tag = "strong" if len(mark) == 2 else "em"
                return f"<{tag}>{shown}</{tag}>", plain, i + len(mark)
            i += 1
        return escape(mark), mark, after


# ---- blocks ----


class Renderer:
    def __init__(self, name, inline):
        self.name, self.inline = name, inline
        self.sections, self.anchors = [], {}

    def fail(self, number, what):
        raise MarkdownError(f"{self.name}:{number}: {what}")

    def text(self, number, words):
        try:
            shown, plain = self.inline.render(words)
        except MarkdownError as e:
            self.fail(number, e)
        if self.sections:
            self.sections[-1].text.append(plain)
        return shown

    def blocks(self, lines):
        """lines: [(number, text)]. HTML of the blocks."""
        out, at = [], 0
        while at < len(lines):
            if not lines[at][1].strip():
                at += 1
                continue
            for way in (self.fence, self.heading, self.rule, self.quote, self.listing, self.indented, self.table):
                found = way(lines, at)
                if found:
                    break
            else:
                found = self.paragraph(lines, at)
            out.append(found[0])
            at = found[1]
        return "".join(out)

    def fence(self, lines, at):
        match = FENCE.match(lines[at][1])
        if not match:
            if lines[at][1].lstrip().startswith("```"):
                self.fail(lines[at][0], "a fence with something behind its language")
            return None
        indent, ticks, language = match.groups()
        body, end = [], at + 1
        while end < len(lines) and lines[end][1].strip() != ticks:
            line = lines[end][1]
            body.append(line[len(indent):] if line.startswith(indent) else line.lstrip())
            end += 1
        if end == len(lines):
            self.fail(lines[at][0], "a block without an end")
        return self.code(body, language), end + 1

    def code(self, body, language):
        text = "\n".join(body)
        if self.sections:
            self.sections[-1].text.append(text)
        shown = escape(text)
        if language in ("sh", "yaml", "python", "text"):
            shown = re.sub(r"(^|\s)(# .*)$", r'\1<span class="comment">\2</span>', shown, flags=re.M)
        kind = f' class="language-{escape(language)}"' if language else ""
        return f'<div class="code"><pre tabindex="0"><code{kind}>{shown}</code></pre></div>\n'

    def heading(self, lines, at):
        match = HEADING.match(lines[at][1])
        if not match:
            return None
        level, (shown, plain) = len(match[1]), self.inline.render(match[2])
        anchor = match[3] or slug(plain)
        if match[3] and anchor in self.anchors:
            self.fail(lines[at][0], f"the anchor {anchor} is taken")
        count = self.anchors.get(anchor, 0)
        self.anchors[anchor] = count + 1
        if count:
            anchor = f"{anchor}-{count}"
        self.sections.append(Section(level, plain, anchor))
        link = "" if level == 1 else f'<a class="anchor" href="#{escape(anchor)}" aria-label="Link to this section">#</a>'
        return f'<h{level} id="{escape(anchor)}">{shown}{link}</h{level}>\n', at + 1

    def rule(self, lines, at):
        return ("<hr>\n", at + 1) if RULE.match(lines[at][1]) else None

    def quote(self, lines, at):
        if not lines[at][1].startswith(">"):
            return None
        end = at
        while end < len(lines) and lines[end][1].startswith(">"):
            end += 1
        inside = [(number, re.sub(r"^> ?", "", line)) for number, line in lines[at:end]]
        return f"<blockquote>\n{self.blocks(inside)}</blockquote>\n", end

    def indented(self, lines, at):
        if not lines[at][1].startswith("    "):
            return None
        end = at
        while end < len(lines) and (lines[end][1].startswith("    ") or not lines[end][1].strip()):
            end += 1
        while not lines[end - 1][1].strip():
            end -= 1
        return self.code([line[4:] for _, line in lines[at:end]], ""), end

    def listing(self, lines, at):
        first = ITEM.match(lines[at][1])
        if not first or len(first[1]) > 3:
            return None
        ordered, base, items, loose, end = first[2][0].isdigit(), len(first[1]), [], False, at
        while end < len(lines):
            match = ITEM.match(lines[end][1])
            if not match or len(match[1]) != base or match[2][0].isdigit() != ordered:
                break
            begin, width = end, match.end()
            body = [(lines[end][0], lines[end][1][width:])]
            end += 1
            while end < len(lines):
                line = lines[end][1]
                if not line.strip():
                    following = next((text for _, text in lines[end:] if text.strip()), "")
                    if len(following) - len(following.lstrip()) < width:
                        break
                    body.append((lines[end][0], ""))
                elif line.startswith(" " * width):
                    body.append((lines[end][0], line[width:]))
                elif ITEM.match(line) or self.opens(line) or not body[-1][1].strip():
                    break
                else:
                    body.append((lines[end][0], line.lstrip()))  # the paragraph goes on
                end += 1
            items.append(body)
            skip = end
            while skip < len(lines) and not lines[skip][1].strip():
                skip += 1
            again = ITEM.match(lines[skip][1]) if skip < len(lines) else None
            if skip > end and again and len(again[1]) == base and again[2][0].isdigit() == ordered:
                loose, end = True, skip
            elif end == begin:
                self.fail(lines[end][0], "an item without an end")
        parts = []
        for body in items:
            shown = self.blocks(body)
            if not loose:
                shown = re.sub(r"^<p>(.*?)</p>\n", r"\1\n", shown, count=1, flags=re.S)
            parts.append(f"<li>{shown.strip()}</li>\n")
        tag, start = ("ol", int(first[2][:-1])) if ordered else ("ul", 1)
        return f'<{tag}{f" start={chr(34)}{start}{chr(34)}" if start != 1 else ""}>\n{"".join(parts)}</{tag}>\n', end

    @staticmethod
    def cells(line):
        """Cells of a row: bars in code spans count only where they are escaped, as GitHub has it."""
        line = line.strip()
        line = line[1:] if line.startswith("|") else line
        line = line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
        return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)]

    @staticmethod
    def is_table(lines, at):
        below = lines[at + 1][1] if at + 1 < len(lines) else ""
        return "|" in lines[at][1] and "|" in below and bool(DELIMITER.match(below))

    def table(self, lines, at):
        if not self.is_table(lines, at):
            return None
        head, end = self.cells(lines[at][1]), at + 2
        rows = []
        while end < len(lines) and "|" in lines[end][1] and lines[end][1].strip():
            row = self.cells(lines[end][1])
            if len(row) != len(head):
                self.fail(lines[end][0], f"a row of {len(row)} cells in a table of {len(head)}")
            rows.append("<tr>" + "".join(f"<td>{self.text(lines[end][0], cell)}</td>" for cell in row) + "</tr>\n")
            end += 1
        shown = "".join(f"<th>{self.inline.render(cell)[0]}</th>" for cell in head)
        top = f"<thead>\n<tr>{shown}</tr>\n</thead>\n" if any(head) else ""
        return f'<div class="table" tabindex="0">\n<table>\n{top}<tbody>\n{"".join(rows)}</tbody>\n</table>\n</div>\n', end

    @staticmethod
    def opens(line):
        """Whether a line ends a paragraph by being something else."""
        return bool(not line.strip() or HEADING.match(line) or line.lstrip().startswith("```") or line.startswith(">") or RULE.match(line))

    def paragraph(self, lines, at):
        end, words = at, []
        while end < len(lines):
            line = lines[end][1]
            item = ITEM.match(line)
            if end > at and (self.opens(line) or item and (not item[2][0].isdigit() or item[2] == "1.") or self.is_table(lines, end)):
                break
            if re.match(r"\s*<(!--|/?[a-zA-Z][\w-]*[ />])", line):
                self.fail(lines[end][0], "raw HTML is not part of the documents")
            words.append(line.strip() + ("\\" if line.endswith("  ") and end + 1 < len(lines) and lines[end + 1][1].strip() else ""))
            end += 1
        return f"<p>{self.text(lines[at][0], chr(10).join(words))}</p>\n", end


def render(text, name="text", link=lambda target: target, image=lambda target: target, code=lambda words: None):
    links = []

    def asked(target):
        links.append(target)
        return link(target)

    renderer = Renderer(name, Inline(asked, image, code))
    shown = renderer.blocks(list(enumerate(text.expandtabs(4).splitlines(), 1)))
    return Page(shown, renderer.sections, links)
