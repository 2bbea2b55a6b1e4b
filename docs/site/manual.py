"""Manual pages (mdoc) to Markdown: the macros that ours use; another one is an error."""
import re
import shlex

OPENING, CLOSING = {"(", "["}, {".", ",", ":", ";", ")", "]", "?", "!"}
CODE = {"Ar", "Cm", "Ev", "Fl", "Ic", "Li", "Pa", "Op", "Oo", "Nm", "Xr", "Sy"}
CALLABLE = CODE | {"Pq", "Sq", "Dq", "Em", "No", "Ns", "Oc"}


class ManualError(Exception):
    """The line and what is wrong with it."""


def unescape(text):
    return text.replace("\\(dq", '"').replace("\\&", "").replace("\\-", "-").replace("\\e", "\\").replace("\\(en", "–")


def words_of(line):
    lexer = shlex.shlex(line, posix=True)
    lexer.whitespace_split, lexer.quotes, lexer.commenters, lexer.escape = True, '"', "", ""
    return [unescape(word) for word in lexer]


def plain(words, name):
    """A line of macros as it is typed: `Fl Fl name Op Ar X` is --name [X]."""
    out, glue, closes = "", True, []

    def put(text, tight=False):
        nonlocal out, glue
        out += text if glue or tight else " " + text
        glue = False

    at = 0
    while at < len(words):
        word = words[at]
        at += 1
        if word == "Fl":
            dashes = "-"
            while at < len(words) and words[at] == "Fl":
                dashes, at = dashes + "-", at + 1
            if at < len(words) and words[at] not in CALLABLE | CLOSING | {"|"}:
                dashes, at = dashes + words[at], at + 1
            put(dashes)
        elif word == "Ns":
            glue = True
        elif word == "Oo" or word in ("Op", "Pq", "Sq", "Dq"):
            opened = {"Oo": "[", "Op": "[", "Pq": "(", "Sq": "'", "Dq": '"'}[word]
            put(opened)
            glue = True
            if word != "Oo":
                closes.append({"[": "]", "(": ")"}.get(opened, opened))
        elif word == "Oc":
            put("]", True)
        elif word == "Nm":
            if at == len(words) or words[at] in CALLABLE | CLOSING:
                put(name)
        elif word == "Xr":
            put(f"{words[at]}({words[at + 1]})")
            at += 2
        elif word in CALLABLE:
            continue
        elif word in CLOSING:
            if closes and at == len(words):
                out += "".join(reversed(closes))
                closes = []
            put(word, True)
        elif word in OPENING:
            put(word)
            glue = True
        else:
            put(word)
    return out + "".join(reversed(closes))


def sentence(words, name):
    """A line of macros within a text: what is typed becomes code, punctuation stays outside."""
    macro, rest = words[0], words[1:]
    tail = ""
    while rest and rest[-1] in CLOSING:
        tail = rest.pop() + tail
    if macro in ("Pq", "Sq", "Dq"):
        left, right = {"Pq": "()", "Sq": "''", "Dq": '""'}[macro]
        inside = sentence(rest, name) if rest and rest[0] in CALLABLE else " ".join(rest)
        return f"{left}{inside}{right}{tail}"
    if macro == "Em":
        return f"*{' '.join(rest)}*{tail}"
    if macro == "No":
        return " ".join(rest) + tail
    parts, run, mode = [], [macro], macro
    for at, word in enumerate(rest):
        if word in CLOSING and rest[at + 1:at + 2] != ["Ns"]:
            parts += [run, word]
            run = []
        elif word == "No":
            parts.append(run)
            run, mode = [], "No"
        else:
            if not run and word not in CALLABLE and mode in CODE:
                run = [mode]
            if word in CALLABLE:
                mode = word
            run.append(word)
    parts.append(run)
    out = ""
    for part in parts:
        if isinstance(part, str):
            out = out.rstrip() + part + " "
        elif part and part[0] in CALLABLE:
            out += f"`{plain(part, name)}` "
        elif part:
            out += " ".join(part) + " "
    return out.strip() + tail


class Manual:
    """One page, as a list of sections: (level, title, [items and texts])."""

    def __init__(self, text, file):
        self.file, self.name, self.out, self.depth = file, "", [], 0
        self.items = []  # of lists of the first level: (signatures, Markdown of the body)
        self.lines = list(enumerate(text.splitlines(), 1))
        self.para, self.tags = [], []
        self.parse()

    def flush(self):
        if self.para:
            self.emit(" ".join(self.para))
            self.para = []

    def indent(self):
        return "  " * max(self.depth - 1, 0)

    def emit(self, text):
        self.tag()
        self.out.append("\n".join(self.indent() + line if line else "" for line in text.split("\n")) + "\n")

    def tag(self):
        """The signatures that wait for their text."""
        if not self.tags:
            return
        tags, self.tags = self.tags, []
        if self.depth == 1:
            self.out.append(("item", tags))
        else:
            self.out.append(f"{'  ' * (self.depth - 2)}- " + ", ".join(f"`{tag}`" for tag in tags) + "\n")

    def parse(self):
        at = 0
        while at < len(self.lines):
            number, line = self.lines[at]
            at += 1
            if not line.startswith("."):
                self.para.append(escape(unescape(line)))
                continue
            words = words_of(line[1:])
            macro = words[0]
            if macro in ("Dd", "Dt", "Os"):
                continue
            if macro == "Bd":
                self.flush()
                body = []
                while self.lines[at][1] != ".Ed":
                    body.append(unescape(self.lines[at][1]))
                    at += 1
                at += 1
                self.emit("```text\n" + "\n".join(body) + "\n```")
            elif macro == "It" and words[1:] == ["Xo"]:
                inside = []
                while self.lines[at][1] != ".Xc":
                    inside += words_of(self.lines[at][1][1:])
                    at += 1
                at += 1
                self.item(inside)
            else:
                self.one(number, macro, words)
        self.flush()

    def item(self, words):
        self.flush()
        self.tags.append(plain(words, self.name))

    def one(self, number, macro, words):
        if macro in ("Sh", "Ss"):
            self.flush()
            self.out.append((macro, " ".join(words[1:])))
        elif macro == "Nm" and len(words) > 1 and not self.name:
            self.name = words[1]
            self.para.append(f"`{words[1]}`")
        elif macro == "Nd":
            self.para.append("– " + " ".join(words[1:]))
        elif macro == "Pp":
            self.flush()
        elif macro == "Bl":
            self.flush()
            self.tag()
            self.depth += 1
        elif macro == "El":
            self.flush()
            self.tag()
            self.depth -= 1
        elif macro == "It":
            self.item(words[1:])
        elif macro == "Dl":
            self.flush()
            self.emit("```text\n" + plain(words[1:], self.name) + "\n```")
        elif macro in CALLABLE:
            self.para.append(sentence(words, self.name))
        else:
            raise ManualError(f"{self.file}:{number}: there is no macro {macro} here")


def escape(text):
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


def items(text, file, section):
    """[(signatures, Markdown)] of the first level of lists in a section."""
    found, inside = [], False
    for part in Manual(text, file).out:
        if isinstance(part, tuple) and part[0] == "Sh":
            inside = part[1] == section
        elif isinstance(part, tuple) and part[0] == "item" and inside:
            found.append((part[1], []))
        elif found and inside and isinstance(part, str):
            found[-1][1].append(part)
    return [(tags, "\n".join(body)) for tags, body in found]


def markdown(text, file, title):
    """The whole page. Signatures of the first level become headings, those below items of lists."""
    manual = Manual(text, file)
    out, level = [f"# {title}\n"], 2
    skip = False
    for part in manual.out:
        if isinstance(part, str):
            if not skip:
                out.append(part)
        elif part[0] in ("Sh", "Ss"):
            skip = part[1] == "NAME"
            level = 3 if part[0] == "Ss" else 2
            if not skip:
                out.append(f"{'#' * level} {part[1].capitalize() if part[0] == 'Sh' else part[1]}\n")
        else:
            heads = [short(tag) for tag in part[1]]
            if level == 3:
                out.append(f"#### {', '.join(dict.fromkeys(f'`{head}`' for head in heads))}\n")
                out.append("```usage\n" + "\n".join(f"{manual.name} {tag}" for tag in part[1]) + "\n```\n")
            else:
                out.append("**" + ", ".join(f"`{tag}`" for tag in part[1]) + "**\n")
    return "\n".join(out)


def short(tag):
    """The command of a signature: its words before the first option or operand."""
    match = re.match(r"[a-z][a-z-]*(?: [a-z-]+(?! \|)\b)*", tag)
    return match[0] if match else tag
