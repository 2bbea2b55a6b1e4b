"""Values and errors as text, in the form of IPython, which clients show and models know. Stands before
context.py, in the same text."""

import linecache
import os
import re
import traceback
import types

WIDTH, ITEMS_MAX = 79, 1000  # of a line; of the elements of a container that are shown


# ---- values ----------------------------------------------------------------


def pretty(value, depth=0, column=0):
    """As repr(), but a container that does not fit has a line for each element."""
    kind = type(value)
    if kind in (list, tuple, set, frozenset, dict) and depth < 40:
        return pretty_container(value, kind, depth, column)
    if isinstance(value, type) and kind.__repr__ is type.__repr__:
        own = value.__module__
        return value.__qualname__ if own in ("builtins", "exceptions") else f"{own}.{value.__qualname__}"
    if kind in (types.FunctionType, types.BuiltinFunctionType):
        import inspect  # not needed by most, and slow to load

        try:
            own = "" if value.__module__ in ("builtins", None) else f"{value.__module__}."
            return f"<function {own}{value.__qualname__}{inspect.signature(value)}>"
        except (TypeError, ValueError):
            pass
    return repr(value)


def pretty_container(value, kind, depth, column):
    if not value:
        return repr(value)
    opened, closed = {list: "[]", tuple: "()", dict: "{}", set: "{}", frozenset: ("frozenset({", "})")}[kind]
    items = list(value.items() if kind is dict else value)
    if kind in (set, frozenset):
        try:
            items = sorted(items)
        except Exception:
            pass
    cut = len(items) > ITEMS_MAX
    items = items[:ITEMS_MAX]
    end = ",)" if kind is tuple and len(items) == 1 else closed

    def item_at(item, place):
        if kind is not dict:
            return pretty(item, depth + 1, place)
        key = pretty(item[0], depth + 1, place)
        return f"{key}: {pretty(item[1], depth + 1, place + len(key) + 2)}"

    flat = flat_text(item_at, items, opened, end, WIDTH - column)
    if flat is not None and not cut:
        return flat
    lines = [item_at(item, depth + len(opened)) for item in items] + (["..."] if cut else [])
    return opened + (",\n" + " " * (depth + len(opened))).join(lines) + end


def flat_text(item_at, items, opened, end, room):
    parts, size = [], len(opened) + len(end)
    for item in items:
        parts.append(item_at(item, -1 << 20))  # as if there were room for all
        size += len(parts[-1]) + 2
        if size - 2 > room or "\n" in parts[-1]:
            return None
    return opened + ", ".join(parts) + end


# ---- errors ----------------------------------------------------------------

CONTEXT = 2  # lines before and after the one that counts


class Trace:
    """The traceback of an error, without the frames of the driver."""

    def __init__(self, driver):
        self.driver = driver  # the name of its file

    def text(self, error):
        if isinstance(error, SyntaxError) and not self.frames(error):
            return self.syntax(error)
        return "-" * 75 + "\n" + self.chain(error, set())

    def chain(self, error, seen):
        seen.add(id(error))
        before, why = error.__cause__, "The above exception was the direct cause of the following exception:"
        if before is None and not error.__suppress_context__:
            before, why = error.__context__, "During handling of the above exception, another exception occurred:"
        first = f"{self.chain(before, seen)}\n\n{why}\n\n" if before is not None and id(before) not in seen else ""
        name = type(error).__name__
        head = name + "Traceback (most recent call last)".rjust(max(75 - len(name), 34))
        parts = [head] + self.shown(self.frames(error)) + [self.last(error)]
        return first + parts[0] + "\n" + "\n\n".join(parts[1:])

    def last(self, error):
        if isinstance(error, SyntaxError):
            return self.syntax(error).rstrip("\n")
        inner = getattr(error, "exceptions", None)
        text = f"{type(error).__name__}: {error}" + "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        if isinstance(inner, tuple):  # a group
            import textwrap

            for i, one in enumerate(inner[:15], 1):
                text += f"\n+-+---------------- {i} ----------------\n" + textwrap.indent(self.chain(one, {id(error)}), "  | ")
        return text

    def frames(self, error):
        found = traceback.walk_tb(error.__traceback__)
        return [(frame, line) for frame, line in found if frame.f_code.co_filename != self.driver]

    def shown(self, frames):
        """Repetitions are counted instead."""
        parts, again, before = [], 0, None
        for frame, line in frames:
            key = (frame.f_code, line)
            if key == before:
                again += 1
                if again >= 2:
                    continue
            else:
                parts += self.skipped(before, again)
                before, again = key, 0
            parts.append(self.frame(frame, line))
        return parts + self.skipped(before, again)

    @staticmethod
    def skipped(key, again):
        return [f"    [... skipping similar frames: {key[0].co_name} at line {key[1]} ({again - 1} times)]"] if again > 1 else []

    def frame(self, frame, line):
        code = frame.f_code
        cell = re.match(r"<cell (\d+)>$", code.co_filename)
        where = f"Cell In[{cell[1]}], line {line}" if cell else f"File {self.home(code.co_filename)}:{line}"
        name = getattr(code, "co_qualname", code.co_name)
        if code.co_name != "<module>":
            where += f", in {name.replace('<locals>.', '')}{'' if code.co_name.startswith('<') else self.arguments(code)}"
        return "\n".join([where, *self.lines(code, line, frame.f_globals)]).rstrip("\n")

    @staticmethod
    def home(path):
        home = os.path.expanduser("~")
        return "~" + path[len(home):] if home != "/" and path.startswith(home + "/") else path

    @staticmethod
    def arguments(code):
        import inspect

        n, flags = code.co_argcount + code.co_kwonlyargcount, code.co_flags
        names = list(code.co_varnames[:n])
        for flag, mark in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if flags & flag:
                names.append(mark + code.co_varnames[n])
                n += 1
        return f"({', '.join(names)})"

    @staticmethod
    def lines(code, line, names):
        import inspect
        import textwrap

        source = linecache.getlines(code.co_filename, names)
        if not 0 < line <= len(source):
            return []
        first, last = 1, len(source)
        if code.co_name != "<module>":
            first = code.co_firstlineno
            try:
                last = first + len(inspect.getblock(source[first - 1:])) - 1
            except Exception:
                pass
        low, high = max(first, line - CONTEXT), min(max(last, line), line + CONTEXT)
        texts = [text.rstrip("\n") for text in source[low - 1:high]]
        while texts and not texts[-1].strip() and low + len(texts) - 1 > line:
            texts.pop()
        shown = textwrap.dedent("\n".join(text.expandtabs() for text in texts)).split("\n")
        return [f"{'-' * max(0, 5 - len(str(n)))}> {n} {text}".rstrip() if n == line else f"{n:>7} {text}".rstrip()
                for n, text in enumerate(shown, low)]

    def syntax(self, error):
        cell = re.match(r"<cell (\d+)>$", error.filename or "")
        where = f"Cell In[{cell[1]}], line {error.lineno}" if cell else f"File {self.home(error.filename or '?')}:{error.lineno}"
        text, mark = (error.text or "").rstrip("\n"), ""
        if text and error.offset:
            stripped = text.lstrip()
            mark = f"\n    {stripped}\n    {' ' * max(0, error.offset - 1 - (len(text) - len(stripped)))}^"
        return f"  {where}{mark}\n{type(error).__name__}: {error.msg}\n"


