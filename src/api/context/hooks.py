"""Libraries that show things: matplotlib, PIL and IPython send what they show as results. Stands before
context.py, in the same text."""

import importlib.machinery
import os
import sys
import types


def show_figures(*_, **__):
    """plt.show(), and the end of a cell: every open figure becomes a result and is closed."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if not hasattr(pyplot, "get_fignums"):
        return
    for number in pyplot.get_fignums():
        figure = pyplot.figure(number)
        try:
            show(figure)
        finally:
            pyplot.close(figure)


def hook_pyplot(pyplot):
    pyplot.show = show_figures


def hook_images(images):
    """There is no screen: Image.show() is a result. So is what is saved under a name."""
    save = images.Image.save

    def save_and_show(self, fp, format=None, **options):
        save(self, fp, format, **options)
        if isinstance(fp, (str, os.PathLike)):
            show(self)

    save_and_show.__doc__ = save.__doc__
    images.Image.save = save_and_show
    images.Image.show = lambda self, *_, **__: show(self)


def hook_display(functions):
    """IPython's display() without IPython's shell."""
    functions.display = display
    functions.publish_display_data = lambda data, *_, **__: show(Raw(data))
    functions.clear_output = lambda *_, **__: None


HOOKS = {"matplotlib.pyplot": hook_pyplot, "PIL.Image": hook_images, "IPython.core.display_functions": hook_display}


class Finder:
    """Runs a hook the moment that its library is imported, and stands in for IPython where there is none."""

    def find_spec(self, name, path=None, target=None):
        if name in HOOKS:
            spec = self.others(name, path, target)
            if spec and spec.loader and hasattr(spec.loader, "exec_module"):
                run = spec.loader.exec_module

                def exec_module(module):
                    run(module)
                    HOOKS[name](module)

                spec.loader.exec_module = exec_module
            return spec
        if name == "IPython" or (name.startswith("IPython.") and hasattr(sys.modules.get("IPython"), "__paddock__")):
            spec = self.others(name, path, target)
            if spec is None and name in STANDINS:
                return importlib.machinery.ModuleSpec(name, StandIn(name), is_package=name != "IPython.display")
            return spec
        return None

    def others(self, name, path, target):
        for finder in sys.meta_path:
            spec = None if finder is self or not hasattr(finder, "find_spec") else finder.find_spec(name, path, target)
            if spec:
                return spec
        return None


# ---- IPython where it is not installed --------------------------------------


class Shown:
    """A value of IPython.display: data of one type, given, in a file or at an address."""

    mime, binary = "text/plain", False

    def __init__(self, data=None, url=None, filename=None, **_):
        looks_url = isinstance(data, str) and data.startswith(("http://", "https://"))
        if data is not None and isinstance(data, (str, os.PathLike)) and (self.binary or self.mime == "image/svg+xml") and (
                looks_url or os.path.exists(data)):
            url, filename, data = (data, None, None) if looks_url else (None, data, None)
        if filename is not None:
            with open(filename, "rb") as file:
                data = file.read()
        elif url is not None:
            import urllib.request

            with urllib.request.urlopen(url) as answer:
                data = answer.read()
        self.data = data.decode() if isinstance(data, bytes) and not self.binary else data

    def _repr_mimebundle_(self, **_):
        return {"text/plain": repr(self), self.kind(): self.data}

    def kind(self):
        return self.mime

    def __repr__(self):
        return f"<IPython.core.display.{type(self).__name__} object>"


class Image(Shown):
    mime, binary = "image/png", True

    def kind(self):
        return "image/jpeg" if bytes(self.data[:2]) == b"\xff\xd8" else self.mime


class Math(Shown):
    mime = "text/latex"

    def _repr_mimebundle_(self, **_):
        return {"text/plain": repr(self), "text/latex": f"$\\displaystyle {self.data.strip('$')}$"}


def shown(name, mime):
    return type(name, (Shown,), {"mime": mime})


def get_ipython():
    return shell


def clear_output(*_, **__):
    pass


STANDINS = {
    # Libraries that find a shell here would use more of it than there is; cells have a get_ipython() of their own.
    "IPython": lambda: {"get_ipython": lambda: None, "version_info": (8, 31, 0), "__version__": "8.31.0",
                        "display": __import__("importlib").import_module("IPython.display")},
    "IPython.display": lambda: {
        "display": display, "clear_output": clear_output, "Image": Image, "Math": Math,
        "publish_display_data": lambda data, *_, **__: show(Raw(data)),
        **{name: shown(name, mime) for name, mime in (
            ("HTML", "text/html"), ("Markdown", "text/markdown"), ("Latex", "text/latex"), ("SVG", "image/svg+xml"),
            ("JSON", "application/json"), ("Javascript", "application/javascript"), ("Pretty", "text/plain"))}},
}


class StandIn:
    def __init__(self, name):
        self.name = name

    def create_module(self, spec):
        return types.ModuleType(spec.name)

    def exec_module(self, made):
        made.__dict__["__paddock__"] = True
        made.__dict__.update(STANDINS[self.name]())


