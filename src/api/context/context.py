"""The Python of a code context: one namespace that lives as long as its process.

paddock-api sends this text and then requests over descriptor 250: a line
"ID BYTES ENV_BYTES", a JSON object of variables, then the code. Events go to descriptor 251, a JSON object on each
line: {"id", "type": "begin" | "result" | "error" | "end", ...}; from "begin" on
SIGINT interrupts the code. What the code prints is
none of this file's business: descriptors 1 and 2 are its own.

Runs with any Python from 3.9 on and needs nothing but the standard library. charts.py, texts.py, hooks.py and
cells.py are the first part of the same text. `control`, the reader of descriptor 250, is given by the line that runs this.
"""

import ast
import base64
import builtins
import datetime
import json
import linecache
import math
import os
import signal
import sys
import threading
import types

EVENTS = 251
TEXT_MAX = 1 << 20  # of a result's text
FORMAT_MAX = 6 << 20  # of each of its other formats
EVENT_MAX = 12 << 20  # of all of them
TRACEBACK_MAX = 1 << 16
SOURCES_MAX = 32 << 20  # of cells that tracebacks can quote
ROWS_MAX, COLUMNS_MAX = 1000, 100  # of a DataFrame's data
DEPTH_MAX = 40
HERE = "<paddock>"

FORMATS = {  # the short names that a client sees
    "text/plain": "text",
    "text/html": "html",
    "text/markdown": "markdown",
    "text/latex": "latex",
    "image/svg+xml": "svg",
    "image/png": "png",
    "image/jpeg": "jpeg",
    "application/pdf": "pdf",
    "application/json": "json",
    "application/javascript": "javascript",
}
METHODS = {
    "html": "_repr_html_",
    "markdown": "_repr_markdown_",
    "latex": "_repr_latex_",
    "svg": "_repr_svg_",
    "png": "_repr_png_",
    "jpeg": "_repr_jpeg_",
    "pdf": "_repr_pdf_",
    "json": "_repr_json_",
    "javascript": "_repr_javascript_",
}


# ---- events ----------------------------------------------------------------


class Interrupts:
    """Turns SIGINT into KeyboardInterrupt, but only while code runs, and never within an event."""

    def __init__(self):
        self.armed = self.held = self.pending = False

    def on_signal(self, signo, frame):
        if self.held:
            self.pending = True
        elif self.armed:
            raise KeyboardInterrupt

    def release(self):
        self.held = False
        pending, self.pending = self.pending, False
        if pending and self.armed:
            raise KeyboardInterrupt


interrupts = Interrupts()
lock = threading.Lock()
current = 0  # the request that events belong to


def text(value):
    """What every JSON reader takes: no lone surrogates, no NUL."""
    return str(value).encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def clean(value, depth=0):
    """A copy that is plain JSON, whatever it was."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text(value)
    if isinstance(value, int):
        return int(value) if abs(value) < 1 << 63 else str(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if depth == DEPTH_MAX:
        return "\u2026"
    if isinstance(value, dict):
        return {text(k): clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [clean(v, depth + 1) for v in value]
    item = getattr(value, "item", None)  # numpy's numbers
    if item and getattr(value, "ndim", None) == 0:
        plain = item()
        if isinstance(plain, (bool, int, float, str)):
            return clean(plain, depth + 1)
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if isinstance(value, datetime.date):  # and pandas' Timestamp
        return value.isoformat()
    return text(value)


def plain(value):
    """A value as JSON says it; TypeError where it cannot."""
    if value is None or isinstance(value, (str, bool, float)):
        return clean(value)
    if isinstance(value, int) and abs(value) < 1 << 63:
        return int(value)
    if isinstance(value, dict):
        return {plain_key(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return plain(value.tolist())
    if type(value).__module__ == "uuid":
        return str(value)
    raise TypeError(type(value).__name__)


def plain_key(key):
    if isinstance(key, str):
        return text(key)
    made = plain(key)
    if isinstance(made, (dict, list)):
        raise TypeError(type(key).__name__)
    return made if isinstance(made, str) else json.dumps(made)


def emit(kind, **fields):
    line = json.dumps({"id": current, "type": kind, **fields}, allow_nan=False).encode() + b"\n"
    main = threading.current_thread() is threading.main_thread()
    if main:
        interrupts.held = True
    try:
        flush()  # what was printed before comes before
        with lock:
            view = memoryview(line)
            while view:
                view = view[os.write(EVENTS, view):]
    finally:
        if main:
            interrupts.release()


libc = None


def flush_c():
    """Extensions print into a buffer of the C library's own."""
    global libc
    try:
        if libc is None:
            import ctypes

            libc = (ctypes.CDLL(None), ctypes.c_void_p.in_dll(ctypes.CDLL(None), "stdout"))
        libc[0].fflush(libc[1])
    except Exception:
        libc = False


def flush():
    for stream in {id(s): s for s in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)}.values():
        try:
            stream.flush()
        except Exception:
            pass
    if libc is not False:
        flush_c()


# ---- results ---------------------------------------------------------------


def encode(name, value):
    """A format's value as JSON, or None when it cannot be shown."""
    if name in ("json", "data", "chart"):
        return clean(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(bytes(value)).decode()
    return text(value)


def call(value, method):
    """A value's own method; a class that is shown is not one of its instances."""
    if isinstance(value, type):
        return None
    found = getattr(value, method, None)
    return found() if callable(found) else None


def figure_png(figure):
    import io

    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    return out.getvalue()


def is_figure(value):
    return type(value).__module__ == "matplotlib.figure" and hasattr(value, "savefig")


def frame_data(value):
    """A DataFrame or Series as {column: [values]}, and whether that is all of it."""
    frame = value.to_frame() if type(value).__name__ == "Series" else value
    data = {}
    for i in range(min(frame.shape[1], COLUMNS_MAX)):
        name = base = text(frame.columns[i])
        n = 1
        while name in data:
            n += 1
            name = f"{base}.{n}"
        data[name] = clean(frame.iloc[:ROWS_MAX, i].tolist())
    return data, frame.shape[0] > ROWS_MAX or frame.shape[1] > COLUMNS_MAX


def bundle(value):
    """{short name: value} of everything that a value can be shown as; bytes are bytes yet."""
    formats, extra = {}, {}
    mime = call(value, "_repr_mimebundle_")
    if isinstance(mime, tuple):
        mime = mime[0]
    for key, item in (mime or {}).items():
        if key in FORMATS:
            formats[FORMATS[key]] = item
        else:
            extra[text(key)] = encode("", item) if isinstance(item, (bytes, str)) else clean(item)
    for name, method in METHODS.items():
        if name not in formats:
            item = call(value, method)
            if isinstance(item, tuple):  # (data, metadata)
                item = item[0]
            if item is not None:
                formats[name] = item
    if is_figure(value):
        formats["png"] = figure_png(value)
        chart = chart_of(value)
        if chart is not None:
            formats["chart"] = chart
    if "text" not in formats:
        formats["text"] = pretty(value)
    if isinstance(value, (list, dict)) and "json" not in formats:
        try:
            formats["json"] = plain(value)
        except (TypeError, RecursionError):
            pass  # it is more than JSON can say
    if extra:
        formats["extra"] = extra
    return formats


def show(value, main=False):
    """Sends a value as a result. Formats that are too large are left out, and it says so."""
    formats, cut = bundle(value), False
    if type(value).__module__.startswith("pandas.core") and type(value).__name__ in ("DataFrame", "Series"):
        formats["data"], cut = frame_data(value)
    result, left = {}, EVENT_MAX
    for name, item in formats.items():
        item = item if name == "extra" else encode(name, item)
        if name == "text" and len(item) > TEXT_MAX:
            item, cut = item[:TEXT_MAX], True
        size = len(item) if isinstance(item, str) else len(json.dumps(item, allow_nan=False))
        if size > min(FORMAT_MAX, left):
            cut = True
            continue
        left -= size
        result[name] = item
    emit("result", main=main, truncated=cut, **result)


def display(*values, raw=False, **_):
    """Shows values as results, before the code has ended. raw: values are {MIME type: data}."""
    for value in values:
        if raw and isinstance(value, dict):
            value = Raw(value)
        show(value)


class Raw:
    def __init__(self, data):
        self.data = data

    def _repr_mimebundle_(self):
        return {"text/plain": "", **self.data}


# ---- running ---------------------------------------------------------------


class Sources:
    """The text of cells, so that tracebacks show lines of functions made long ago."""

    def __init__(self):
        self.names, self.size = [], 0

    def add(self, name, code):
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        self.names.append((name, len(code)))
        self.size += len(code)
        while self.size > SOURCES_MAX and len(self.names) > 1:
            old, size = self.names.pop(0)
            linecache.cache.pop(old, None)
            self.size -= size


class Cell:
    FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    future = 0  # from __future__ import … holds for the cells that follow
    loop = None

    def __init__(self, code, name):
        self.code, self.name = code, name

    def parse(self):
        try:
            return self.compile(bare_magic(self.code) or self.code, "exec", ast.PyCF_ONLY_AST)
        except SyntaxError:
            translated = translate(self.code)
            if translated == self.code:
                raise
        return self.compile(translated, "exec", ast.PyCF_ONLY_AST)

    def compile(self, source, mode, flags=0):
        made = compile(source, self.name, mode, flags | self.FLAGS | Cell.future, dont_inherit=True)
        if isinstance(made, types.CodeType):
            import __future__

            for feature in __future__.all_feature_names:
                Cell.future |= made.co_flags & getattr(__future__, feature).compiler_flag
        return made

    def evaluate(self, code):
        value = eval(code, module.__dict__)
        if not code.co_flags & 0x80:  # CO_COROUTINE
            return value
        import asyncio

        if Cell.loop is None or Cell.loop.is_closed():
            Cell.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(Cell.loop)
        task = Cell.loop.create_task(value)
        try:
            return Cell.loop.run_until_complete(task)
        except BaseException:
            if not task.done():
                task.cancel()
                interrupts.armed = False  # what is being cancelled is not to be interrupted again
                Cell.loop.run_until_complete(asyncio.wait([task], timeout=1))
                interrupts.armed = True
            raise

    def run(self):
        emit("begin")
        tree = self.parse()
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        if tree.body:
            self.evaluate(self.compile(tree, "exec"))
        if last:
            value = self.evaluate(self.compile(ast.Expression(last.value), "eval"))
            if value is not None and not self.code.rstrip().endswith(";"):
                module.__dict__["_"] = value
                show(value, True)
                pyplot = sys.modules.get("matplotlib.pyplot")
                if is_figure(value) and hasattr(pyplot, "close"):
                    pyplot.close(value)


def report(error):
    kind = type(error)
    try:
        value = text(error)
    except Exception:
        value = "<its text cannot be made>"
    try:
        lines = text(Trace(HERE).text(error))
    except Exception as broken:
        lines = f"{kind.__name__}: {value}\n(no traceback: {type(broken).__name__})\n"
    if len(lines) > TRACEBACK_MAX:
        lines = lines[:TRACEBACK_MAX // 2] + "\n\u2026\n" + lines[-TRACEBACK_MAX // 2:]
    emit("error", name=text(kind.__name__), value=value[:TRACEBACK_MAX], traceback=lines)


def guarded(work):
    """Runs what may be interrupted; the exception that ended it, or None."""
    try:
        try:
            interrupts.armed = True
            work()
        finally:
            interrupts.armed = False
    except BaseException as error:
        return error
    return None


def set_variables(variables):
    """None: it is not set. What was there before is returned."""
    before = {name: os.environ.get(name) for name in variables}
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    return before


def execute(code, variables, count):
    pid = os.getpid()
    name, code = f"<cell {count}>", without_indent(code)
    sources.add(name, code)
    before = set_variables(variables)
    error = guarded(Cell(code, name).run)
    set_variables(before)
    if os.getpid() == pid:
        error = guarded(show_figures) or error if error is None else (guarded(show_figures), error)[1]
    if os.getpid() != pid:  # a child that the code forked came out here: it ends as a script would
        flush()
        os._exit(0 if error is None else 1)
    if error is not None:
        report(error)
    emit("end", count=count)


def tidy_arguments():
    """`ps` shows "python3" instead of the line that started us. The kernel's own record of where that is."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        start, end = int(fields[45]), int(fields[46])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(start)
            memory.write(b"python3".ljust(end - start, b"\0"))
    except (OSError, ValueError, IndexError):
        pass  # it is not worth a context


sources = Sources()
module = types.ModuleType("__main__")
shell = Shell()


def main():
    global current
    for fd in (control.fileno(), EVENTS):
        os.set_inheritable(fd, False)
    signal.signal(signal.SIGINT, interrupts.on_signal)
    tidy_arguments()
    os.environ.setdefault("MPLBACKEND", "Agg")
    sys.meta_path.insert(0, Finder())
    sys.argv[:] = [""]
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
    sys.modules["__main__"] = module
    module.__dict__.update(__builtins__=builtins, display=display, get_ipython=get_ipython, __paddock__=Calls)
    count = 0
    while True:
        head = control.readline().split()
        if len(head) != 3:
            return
        variables = json.loads(control.read(int(head[2])) or "{}")
        code = control.read(int(head[1])).decode("utf-8", "replace")
        current, count = int(head[0]), count + 1
        execute(code, variables, count)


main()
