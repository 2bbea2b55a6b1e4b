"""What figures of matplotlib show, as data: {type, title, elements, …} (api/openapi.yaml,
ExecutionResult.chart). Stands before context.py, in the same text."""

import math


def chart_of(figure):
    """None for a figure without axes; never raises: a figure that is not understood is still an image."""
    try:
        charts = [Axes(axes).chart() for axes in figure.axes]
        if len(charts) > 1:
            return {"type": "superchart", "title": figure._suptitle.get_text() if figure._suptitle else None,
                    "elements": charts}
        return charts[0] if charts else None
    except Exception:
        return None


class Axis:
    """One of the two: labels, ticks, and values as a reader of the chart would name them."""

    def __init__(self, axes, name):
        import matplotlib.dates

        self.dates, self.name = matplotlib.dates, name
        self.axis = axes.xaxis if name == "x" else axes.yaxis
        newer = getattr(self.axis, "get_converter", None)  # from 3.10 on
        converter = type(newer() if newer else self.axis.converter).__name__
        self.kind = ("datetime" if "Date" in converter else
                     "categorical" if converter == "StrCategoryConverter" else self.axis.get_scale())
        self.names = {}
        if self.kind == "categorical" and self.axis.units is not None:
            self.names = {float(number): str(text) for text, number in self.axis.units._mapping.items()}

    def value(self, raw):
        if hasattr(raw, "isoformat"):  # as the code gave it
            return raw.isoformat()
        if self.kind == "datetime":
            if type(raw).__name__ == "datetime64":
                return str(raw.astype("datetime64[s]"))
            return self.dates.num2date(float(raw)).replace(tzinfo=None).isoformat()
        if isinstance(raw, str):
            return raw
        raw = float(raw)
        return self.names.get(raw, raw)

    def label_at(self, raw):
        """What stands at the axis at this place; else the value."""
        for place, text in zip(self.axis.get_ticklocs(), self.axis.get_ticklabels()):
            if abs(float(place) - float(raw)) < 1e-9 and text.get_text():
                return text.get_text()
        value = self.value(raw)
        return f"{value:.12g}" if isinstance(value, float) else str(value)

    def title(self):
        """The label, and the unit that it ends with in brackets."""
        label = self.axis.get_label().get_text()
        opened = max(label.rfind("("), label.rfind("["))
        unit = label[opened + 1:-1].strip() if opened >= 0 and label.rstrip()[-1:] in (")", "]") else ""
        return {f"{self.name}_label": label or None, f"{self.name}_unit": unit or None}

    def ticks(self):
        return {
            f"{self.name}_ticks": [self.value(place) for place in self.axis.get_ticklocs()],
            f"{self.name}_tick_labels": [text.get_text() for text in self.axis.get_ticklabels()],
            f"{self.name}_scale": self.kind,
        }


class Axes:
    def __init__(self, axes):
        self.axes, self.x, self.y = axes, Axis(axes, "x"), Axis(axes, "y")

    def chart(self):
        from matplotlib.collections import PathCollection
        from matplotlib.patches import Wedge

        wedges = [patch for patch in self.axes.patches if isinstance(patch, Wedge)]
        bars = [each for each in self.axes.containers if type(each).__name__ == "BarContainer"]
        dots = [each for each in self.axes.collections if isinstance(each, PathCollection)]
        boxes = [] if wedges or bars else self.boxes()
        if wedges:
            return {"type": "pie", "title": self.axes.get_title() or None, "elements": list(map(self.wedge, wedges))}
        if bars:
            lying = all(getattr(group, "orientation", None) == "horizontal" for group in bars)
            made = [bar for i, group in enumerate(bars) for bar in self.bars(group, i)]
            return self.made("bar", made, turned=lying)
        if boxes:
            return self.made("box_and_whisker", boxes)
        if dots:
            named = [(self.name(each, "Dataset", i), each.get_offsets()) for i, each in enumerate(dots)]
            return self.made("scatter", self.points(named), True)
        if self.axes.lines:
            named = [(self.name(each, "Line", i), self.data_of(each)) for i, each in enumerate(self.axes.lines)]
            return self.made("line", self.points(named), True)
        return self.made("unknown", [])

    def made(self, kind, elements, ticks=False, turned=False):
        """turned: what is measured is the other axis, and is called y all the same."""
        chart = {"type": kind, "title": self.axes.get_title() or None, **self.x.title(), **self.y.title()}
        if turned:
            for what in "label", "unit":
                chart[f"x_{what}"], chart[f"y_{what}"] = chart[f"y_{what}"], chart[f"x_{what}"]
        if ticks:
            chart.update(**self.x.ticks(), **self.y.ticks())
        chart["elements"] = elements
        return chart

    @staticmethod
    def name(artist, kind, i):
        label = str(artist.get_label())
        return f"{kind} {i}" if label.startswith("_") else label

    def points(self, named):
        return [{"label": label, "points": [[self.x.value(x), self.y.value(y)] for x, y in points]}
                for label, points in named]

    def data_of(self, line):
        """Dates as the code gave them, where it did; otherwise what is drawn."""
        drawn, given = line.get_data(orig=False), line.get_data(orig=True)
        columns = [own if axis.kind == "datetime" and len(own) == len(plain) else plain
                   for axis, plain, own in zip((self.x, self.y), drawn, given)]
        return zip(*columns)

    @staticmethod
    def wedge(wedge):
        return {"label": str(wedge.get_label()), "angle": rounded(abs(float(wedge.theta2) - float(wedge.theta1))),
                "radius": float(wedge.r)}

    def bars(self, group, i):
        lying = getattr(group, "orientation", None) == "horizontal"
        name = str(group.get_label())
        for bar in group.patches:
            at = bar.get_y() + bar.get_height() / 2 if lying else bar.get_x() + bar.get_width() / 2
            yield {"label": (self.y if lying else self.x).label_at(at), "group": f"Group {i}" if name.startswith("_") else name,
                   "value": rounded(bar.get_width() if lying else bar.get_height())}

    # A box plot is nothing but lines: a closed one with four corners is a box, and what begins at its
    # sides, crosses it or stands on its middle belongs to it.

    def boxes(self):
        from matplotlib.patches import PathPatch

        lines = [[(float(x), float(y)) for x, y in zip(*line.get_data(orig=False))] for line in self.axes.lines]
        shapes = [points for points in lines if len(points) == 5 and points[0] == points[4]]
        shapes += [[(float(x), float(y)) for x, y in patch.get_path().vertices] for patch in self.axes.patches
                   if isinstance(patch, PathPatch)]
        found = [self.box(shape, lines) for shape in shapes]
        return [] if None in found else found

    def box(self, shape, lines):
        (x0, x1), (y0, y1) = ((min(values), max(values)) for values in zip(*shape))
        for lying in (False, True):
            low, high, across = (x0, x1, (y0, y1)) if lying else (y0, y1, (x0, x1))
            # From here on `at` is the place along the box, `of` the one across it.
            turned = [[(x, y) if lying else (y, x) for x, y in line] for line in lines]
            middle = (across[0] + across[1]) / 2
            on_middle = [[at for at, of in line] for line in turned if line and all(close(of, middle) for _, of in line)]
            whiskers = [line for line in on_middle if len(line) == 2 and (close(line[0], low) or close(line[0], high))]
            # The widest of what lies across: the ends of the whiskers are narrower than the median.
            crossing = [(abs(line[0][1] - line[1][1]), line[0][0]) for line in turned
                        if len(line) == 2 and close(line[0][0], line[1][0]) and low <= line[0][0] <= high
                        and close(line[0][1] + line[1][1], 2 * middle)]
            if len(whiskers) < 2 or not crossing:
                continue
            ends = [at for line in whiskers for at in line]
            outliers = [at for line in on_middle if line not in whiskers for at in line if at < min(ends) or at > max(ends)]
            numbers = {"min": min(ends), "first_quartile": low, "median": max(crossing)[1], "third_quartile": high,
                       "max": max(ends)}
            return {"label": (self.y if lying else self.x).label_at(middle),
                    **{name: rounded(number) for name, number in numbers.items()},
                    "outliers": [rounded(number) for number in outliers]}
        return None


def rounded(number):
    """Without what single precision added: seven digits after the first, fewer before a comma than after it."""
    number = float(number)
    if not number or not math.isfinite(number):
        return number
    return float(f"{number:.{max(1, 8 - math.floor(math.log10(abs(number))))}g}")


def close(a, b):
    return abs(a - b) <= 1e-9 * max(1.0, abs(a), abs(b))


