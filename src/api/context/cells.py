"""Cells as people write them: IPython's input language over Python. Stands before context.py, in the same text.

An indented cell loses its indent. A cell that is Python is left alone otherwise; in one that is not,
the lines that begin a statement with !, % or ? (or end with ?) become calls. The numbers of lines stay."""

import ast
import os
import re
import subprocess
import sys

TARGET = r"([\w.\[\]'\", *]+?\s*=\s*)?"
SHELL_LINE = re.compile(rf"^(\s*){TARGET}(!!?)(?!=)(.+)$", re.S)
MAGIC_LINE = re.compile(rf"^(\s*){TARGET}%([A-Za-z_]\w*)(?:[ \t]+(.*))?$", re.S)
HELP_LINE = re.compile(r"^(\s*)(?:(\?\??)\s*([\w.]+)|([\w.]+)(\?\??))\s*;?$")
CELL_MAGIC = re.compile(r"^\s*%%(\w+)[ \t]*([^\n]*)\n?", re.S)


def without_indent(code):
    """The indent of the first line that is not blank goes from every line that has it."""
    lines = code.split("\n")
    first = next((line for line in lines if line.strip()), "")
    indent = first[:len(first) - len(first.lstrip(" \t"))]
    return "\n".join(line[len(indent):] if line.startswith(indent) else line for line in lines) if indent else code


class Scanner:
    """Knows of each line whether a statement can begin there: it is within no string and no bracket."""

    PIECE = re.compile(r"#.*|'''|\"\"\"|'(?:\\.|[^'\\\n])*'?|\"(?:\\.|[^\"\\\n])*\"?|[\[\](){}]", re.S)

    def __init__(self):
        self.quote, self.depth, self.joined = None, 0, False

    def free(self):
        return not (self.quote or self.depth or self.joined)

    def take(self, line):
        at = 0
        while at < len(line):
            if self.quote:
                end = re.compile(r"(?:\\.|(?!%s).)*%s" % (self.quote, self.quote), re.S).match(line, at)
                if not end:
                    break
                self.quote, at = None, end.end()
                continue
            piece = self.PIECE.search(line, at)
            if not piece:
                break
            text, at = piece[0], piece.end()
            if text in ("'''", '"""'):
                self.quote = text
            elif text in "[({":
                self.depth += 1
            elif text in "])}":
                self.depth = max(0, self.depth - 1)
        self.joined = not self.quote and line.rstrip("\n").endswith("\\")


def call_of(line):
    """The call that a line stands for, or None where it is Python."""
    shell, magic, asked = SHELL_LINE.match(line), MAGIC_LINE.match(line), HELP_LINE.match(line)
    if shell:
        capture = bool(shell[2]) or shell[3] == "!!"
        return f"{shell[1]}{shell[2] or ''}__paddock__.shell({shell[4].strip()!r}, {capture})"
    if magic:
        return f"{magic[1]}{magic[2] or ''}__paddock__.magic({magic[3]!r}, {(magic[4] or '').strip()!r})"
    if asked:
        return f"{asked[1]}__paddock__.help({(asked[3] or asked[4])!r})"
    return None


def translate(code):
    cell = CELL_MAGIC.match(code)
    if cell:
        return f"__paddock__.cell({cell[1]!r}, {cell[2].strip()!r}, {code[cell.end():]!r})"
    lines, made, scanner = code.split("\n"), [], Scanner()
    while lines:
        line, more = lines.pop(0), 0
        found = call_of(line) if scanner.free() else None
        while found and line.endswith("\\") and lines:  # the command goes on in the next line
            line, more = line[:-1] + lines.pop(0), more + 1
            found = call_of(line)
        if not found:
            scanner.take(line)
        made += [found or line] + [""] * more
    return "\n".join(made)


def bare_magic(code):
    """The call of a cell that is one magic without its %, such as `pip install x`; None where it is none."""
    found = re.match(r"\s*([a-z_]+)(?:[ \t]+([^\n]*?))?\s*$", code)
    if not found or found[1] not in MAGICS or found[1] in module.__dict__:
        return None
    rest = found[2] or ""
    if re.match(r"(//|>>|<<|\*\*|[-+*/%@&|^])?=(?!=)|[,:.(\[;]|(if|is|in|and|or|not|for)\b", rest):
        return None
    return call_of("%" + code.strip())


def expand(text):
    """{expression} and $name are Python's, where Python knows them; the rest is the shell's."""

    def value(found):
        whole, escaped, name, expression = found[0], found[1], found[2], found[3]
        if escaped:
            return "$"
        if name is not None:
            return str(module.__dict__[name]) if name in module.__dict__ else whole
        try:
            return str(eval(expression, module.__dict__))
        except Exception:
            return whole

    return re.sub(r"(\$\$)|\$([A-Za-z_]\w*)|(?<!\$)\{([^{}\n]+)\}", value, text)


class UsageError(Exception):
    pass


def words_of(text):
    import shlex

    return shlex.split(text)


# ---- magics ----------------------------------------------------------------


def run_program(words, capture=False, text=None):
    flush()
    done = subprocess.run(words, stdout=subprocess.PIPE if capture else None,
                          **({"stdin": subprocess.DEVNULL} if text is None else {"input": text.encode()}))
    module.__dict__["_exit_code"] = done.returncode
    return done.stdout.decode("utf-8", "replace").splitlines() if capture else None


def run_shell(command, capture=False):
    return run_program(["/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh", "-c", command], capture)


def magic_cd(argument):
    before = os.getcwd()
    where = argument.strip("'\"") or "~"
    os.chdir(getattr(magic_cd, "before", before) if where == "-" else os.path.expanduser(os.path.expandvars(where)))
    magic_cd.before = before
    print(os.getcwd())


def magic_env(argument):
    if not argument:
        return dict(os.environ)
    name, _, value = argument.partition("=") if "=" in argument else argument.partition(" ")
    if not value and "=" not in argument:
        return os.environ.get(name)
    os.environ[name.strip()] = value.strip()
    print(f"env: {name.strip()}={value.strip()}")
    return None


def magic_pip(argument):
    run_program([sys.executable, "-m", "pip", *words_of(argument)])
    __import__("importlib").invalidate_caches()


def timed(work):
    import time

    wall, cpu = time.perf_counter(), os.times()
    try:
        return work()
    finally:
        wall, now = time.perf_counter() - wall, os.times()
        user, system = now.user - cpu.user, now.system - cpu.system
        print(f"CPU times: user {lasting(user)}, sys: {lasting(system)}, total: {lasting(user + system)}\n"
              f"Wall time: {lasting(wall)}")


def lasting(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("\u00b5s", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def magic_timeit(argument, body=None):
    import statistics
    import timeit

    number, repeat, words = 0, 7, argument
    while words.startswith("-"):
        option, _, words = words.partition(" ")
        if option in ("-n", "-r"):
            value, _, words = words.strip().partition(" ")
        else:
            value = option[2:]
        if option[:2] == "-n":
            number = int(value)
        elif option[:2] == "-r":
            repeat = int(value)
        words = words.strip()
    setup, code = ("pass", words) if body is None else (words or "pass", body)
    timer = timeit.Timer(code, setup, globals=module.__dict__)
    number = number or timer.autorange()[0]
    each = [took / number for took in timer.repeat(repeat, number)]
    spread = statistics.pstdev(each)
    print(f"{lasting(statistics.mean(each))} \u00b1 {lasting(spread)} per loop (mean \u00b1 std. dev. of {repeat} run"
          f"{'s' if repeat > 1 else ''}, {number:,} loop{'s' if number > 1 else ''} each)")


def magic_run(argument):
    import runpy

    words = words_of(argument)
    before, sys.argv = sys.argv, words
    try:
        made = runpy.run_path(words[0], run_name="__main__")
    finally:
        sys.argv = before
    module.__dict__.update({name: value for name, value in made.items() if not name.startswith("__")})


def names():
    return [name for name in module.__dict__ if not name.startswith("_") and name not in OURS]


def magic_reset(_):
    for name in names():
        del module.__dict__[name]


def help_about(name):
    import inspect
    import pydoc

    try:
        value = eval(name, module.__dict__)
    except Exception:
        print(f"Object `{name}` not found.")
        return
    try:
        print(f"Signature: {name}{inspect.signature(value)}")
    except (TypeError, ValueError):
        print(f"Type:      {type(value).__name__}")
    print(f"Docstring: {pydoc.getdoc(value) or '<no docstring>'}")


def shell_alias(name):
    return lambda argument: run_shell(f"{name} {argument}")


MAGICS = {
    "cd": magic_cd, "env": magic_env, "set_env": magic_env, "pip": magic_pip, "pwd": lambda _: os.getcwd(),
    "time": lambda code: timed(lambda: run_inner(code)), "timeit": magic_timeit, "run": magic_run, "reset": magic_reset,
    "sx": lambda command: run_shell(command, True), "system": lambda command: run_shell(command, True),
    "who": lambda _: print("\t".join(names())), "who_ls": lambda _: sorted(names()),
    # What they would change does not exist here, or is so already.
    **dict.fromkeys(("matplotlib", "load_ext", "reload_ext", "autoreload", "config", "colors", "precision"), lambda _: None),
    **{name: shell_alias(name) for name in ("ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir")},
}
OURS = {"display", "get_ipython", "quit", "exit"}


def cell_file(argument, body):
    words = words_of(argument)
    path = os.path.expanduser(words[-1])
    print(f"{'Appending to' if '-a' in words else 'Overwriting' if os.path.exists(path) else 'Writing'} {path}")
    with open(path, "a" if "-a" in words else "w", encoding="utf-8") as file:
        file.write(body)


def cell_script(*words):
    def run(argument, body):
        run_program([*words, *words_of(argument)], text=body)
        if module.__dict__["_exit_code"]:
            raise subprocess.CalledProcessError(module.__dict__["_exit_code"], body)
    return run


def cell_shown(mime):
    return lambda _, body: display({mime: body}, raw=True)


def cell_capture(argument, body):
    import contextlib
    import io

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        run_inner(body)
    for name in [word for word in argument.split() if not word.startswith("-")][:1]:
        module.__dict__[name] = Captured(out.getvalue(), err.getvalue())


class Captured:
    def __init__(self, stdout, stderr):
        self.stdout, self.stderr = stdout, stderr

    def __str__(self):
        return self.stdout

    def show(self):
        sys.stdout.write(self.stdout)
        sys.stderr.write(self.stderr)


CELLS = {
    "bash": cell_script("bash", "-s", "--"), "sh": cell_script("sh", "-s", "--"), "script": cell_script(),
    "python3": cell_script(sys.executable, "-"), "python": cell_script(sys.executable, "-"), "perl": cell_script("perl", "-"),
    "time": lambda _, body: timed(lambda: run_inner(body)), "timeit": magic_timeit, "capture": cell_capture,
    "writefile": cell_file, "file": cell_file, "sx": lambda _, body: run_shell(body, True),
    "system": lambda _, body: run_shell(body, True), "html": cell_shown("text/html"), "HTML": cell_shown("text/html"),
    "markdown": cell_shown("text/markdown"), "latex": cell_shown("text/latex"), "svg": cell_shown("image/svg+xml"),
    "javascript": cell_shown("application/javascript"), "js": cell_shown("application/javascript"),
}


class Calls:
    """What translated lines call, as __paddock__."""

    @staticmethod
    def shell(command, capture):
        return run_shell(expand(command), capture)

    @staticmethod
    def magic(name, argument):
        if name not in MAGICS:
            raise UsageError(f"Line magic function `%{name}` not found.")
        return MAGICS[name](argument if name in ("time", "timeit") else expand(argument))

    @staticmethod
    def cell(name, argument, body):
        if name not in CELLS:
            raise UsageError(f"Cell magic `%%{name}` not found.")
        return CELLS[name](argument, body)

    help = staticmethod(help_about)


class Shell:
    """What get_ipython() gives: of IPython's shell, what cells use."""

    def __init__(self):
        self.user_ns = module.__dict__
        self.system = self.system_piped = self.system_raw = lambda command: Calls.shell(command, False)
        self.getoutput = lambda command: Calls.shell(command, True)
        self.run_line_magic = lambda name, line="", *_: Calls.magic(name, line)
        self.run_cell_magic = lambda name, line, cell: Calls.cell(name, line, cell)

    def magic(self, line):
        name, _, argument = line.lstrip("%").partition(" ")
        return Calls.magic(name, argument)

    def run_cell(self, code, *_, **__):
        return run_inner(code)


def run_inner(code):
    """Code within a cell, in the same namespace; the value of its last expression."""
    inner = Cell(without_indent(code), f"<cell {current}>")
    tree = inner.parse()
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    inner.evaluate(inner.compile(tree, "exec"))
    return inner.evaluate(inner.compile(ast.Expression(last.value), "eval")) if last else None


