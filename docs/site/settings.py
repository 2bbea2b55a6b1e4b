"""The reference of the configuration, as Markdown: keys, types and ranges from the table in src/config/config_schema.c and from
src/model/box_limits.def, defaults from etc/paddock.yaml, meanings from paddock.yaml(5). A key that one of them does not have is an error."""
import json
import re

import manual
import yaml

KINDS = {"JSON_F_STRING": "string", "JSON_F_U64": "integer", "JSON_F_DOUBLE": "number", "JSON_F_BOOL": "boolean", "JSON_F_ANY": "list or object"}
INTERNAL = {"origins", "egress.sources", "ai.max.warn"}  # the daemon writes the first two; the last one says nothing
CONSTANTS = {"UINT32_MAX": 2**32 - 1, "INT32_MAX": 2**31 - 1}


class SettingsError(Exception):
    """What is missing where."""


def constant(text, defined):
    """The value of an expression of C, made of numbers, shifts and names."""
    while re.search(r"[A-Z]{2}", text):
        text = re.sub(r"UINT64_C\((\w+)\)", r"\1", text)
        text = re.sub(r"\b[A-Z][A-Z0-9_]+\b", lambda m: f"({defined[m[0]]})", text)
    text = re.sub(r"\b(\d+)[uUlL]+\b", r"\1", text).replace("/", "/" if "." in text else "//")
    if not re.fullmatch(r"[\d\s()<+*/.e-]+", text):
        raise SettingsError(f"{text!r} is not a constant")
    return eval(text, {"__builtins__": {}})  # pylint: disable=eval-used - digits and operators, as checked


def tables(source, headers):
    """{variable: [(name, kind, {min, max, …, sub})]} of the arrays of fields."""
    defined = dict(CONSTANTS)
    for text in (*headers, source):
        defined |= {name: value for name, value in re.findall(r"^#define (\w+)[ \t]+([^\n/]+?)[ \t]*(?:/\*.*)?$", text, re.M) if not value.endswith("\\")}
    source = source.replace("TENANT(", "JSON_F_U64, TENANT(")
    found = {}
    for name, body in re.findall(r"^static const struct json_field (\w+)_fields\[\] = \{\n(.*?)^\};", source, re.M | re.S):
        body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
        fields = []
        for key, kind, rest in re.findall(r'\{ "(\w+)", (JSON_F_\w+)(.*?)\}(?=,)', body, re.S):
            options = dict(re.findall(r"\.(min|max|fmin|fmax|sub) = ([^,}]+)", rest))
            sub = options.pop("sub", "").strip().lstrip("&")
            limits = {name.removeprefix("f"): constant(value, defined) for name, value in options.items()}
            if "TENANT(" in rest:
                limits["max"] = 1 << 40
            fields.append((key, kind, limits, sub))
        if len(fields) != len(re.findall(r'\{ "', body)):
            raise SettingsError(f"config_schema.c: {name}_fields is not read as a whole")
        found[name] = fields
    return found


def limits_tables(source, headers):
    """The same of the list of limits, src/model/box_limits.def: the defaults, and the most that there may be."""
    defined = {name: value for text in headers for name, value in re.findall(r"^#define (\w+)[ \t]+([^\n/]+)$", text, re.M)}
    found = {"box_limits_default_schema": [], "box_limits_max_schema": []}
    for kind, name, low, high in re.findall(r"^LIMIT\((\w+), (\w+), \w+, \w+, ([^,]+), ([^,]+),", source, re.M):
        json_kind, low, high = "JSON_F_DOUBLE" if kind == "CPU" else "JSON_F_U64", constant(low, defined), constant(high, defined)
        if kind != "DISK":
            found["box_limits_default_schema"].append((name, json_kind, {"min": low, "max": high}, ""))
            found["box_limits_max_schema"].append((name, json_kind, {"min": low if kind == "COUNT" else 0, "max": high}, ""))
    if len(found["box_limits_max_schema"]) < 3:
        raise SettingsError("box_limits.def: not read as a whole")
    return found


def walk(table, name, prefix=""):
    for key, kind, limits, sub in table[name]:
        path = prefix + key
        if sub:
            yield from walk(table, sub, path + ".")
        elif path not in INTERNAL:
            yield path, kind, limits


def defaults(sample):
    """The sample has every setting with its default, behind a "#"."""
    return yaml.safe_load(re.sub(r"^#", "", re.sub(r"^# \S.*$", "", sample, flags=re.M), flags=re.M))


def names_of(tags):
    """{the names that an item is about}: "a.b , .c" is a.b and a.c."""
    found = []
    for name in re.split(r",\s*", ", ".join(tags)):
        found.append(found[-1].rsplit(".", 1)[0] + name if name.startswith(".") else name.strip())
    return found


def size(number):
    return f"{number:,}" if isinstance(number, int) and number >= 100000 else f"{number:g}" if isinstance(number, float) else str(number)


def span(kind, limits):
    if kind not in ("JSON_F_U64", "JSON_F_DOUBLE"):
        return f"at most {size(limits['max'])} bytes" if kind == "JSON_F_STRING" and "max" in limits else ""
    low = size(limits.get("min", 0))
    return f"{low} to {size(limits['max'])}" if "max" in limits else f"{low} or more"


def shown(value):
    return "none" if value is None else f"`{json.dumps(value)}`"


INTRO = """# Configuration

The daemon reads `/etc/paddock/paddock.yaml`, or the file that `paddock serve --config` names. Every setting has a default, so the file may be
empty or absent. `paddock config check` validates a file, and `paddock config show` prints the settings in force.

Each setting can also be given as an environment variable: `PADDOCK_` and the setting's path in capitals, joined by underscores, such as
`PADDOCK_DEFAULTS_LIMITS_CPU`. Variables override the file, and flags of `paddock serve` override variables.

The file is YAML 1.2. Unknown settings, duplicate keys, anchors, aliases and tags are refused, and an error names its line. The dashboard's page
*Settings* shows every setting of a running daemon and where it comes from.

```yaml
listen: 127.0.0.1:7080
defaults:
  ttl_seconds: 3600
  limits: {cpu: 0.5, memory_mb: 256}
max:
  boxes: 200
pool:
  machine: {warm: 10}
```
"""


def markdown(schema, headers, sample, page, limits_list=None):
    table = tables(schema, headers) | (limits_tables(limits_list, headers) if limits_list else {})
    fields = {path: (kind, limits) for path, kind, limits in walk(table, "config")}
    given, items = defaults(sample), manual.items(page, "paddock.yaml.5", "SETTINGS")
    explained, sections, out = {}, {}, [INTRO]
    for tags, body in items:
        names = names_of(tags)
        covered = [path for path in fields if any(path == name or path.startswith(name + ".") for name in names)]
        unknown = [name for name in names if not any(path == name or path.startswith(name + ".") for path in fields)]
        if unknown:
            raise SettingsError(f"paddock.yaml.5 explains {unknown[0]}, which is no setting")
        explained |= dict.fromkeys(covered)
        sections.setdefault(names[0].split(".")[0], []).append((names, covered, body))
    missing = [path for path in fields if path not in explained]
    if missing:
        raise SettingsError(f"paddock.yaml.5 does not explain {', '.join(missing)}")
    order = list(dict.fromkeys(path.split(".")[0] for path in fields))
    for section in sorted(sections, key=order.index):
        grouped = any("." in path for _, covered, _ in sections[section] for path in covered)
        if grouped:
            out.append(f"## {section}\n")
        for names, covered, body in sections[section]:
            out.append(f"{'###' if grouped else '##'} {', '.join(f'`{name}`' for name in names)} {{#{names[0]}}}\n")
            out.append("| setting | type | default | range |\n|---|---|---|---|")
            for path in covered:
                kind, limits = fields[path]
                out.append(f"| `{path}` | {KINDS[kind]} | {shown(at(given, path))} | {span(kind, limits)} |")
            out.append("\n" + body)
    return "\n".join(out)


def at(tree, path):
    for key in path.split("."):
        if key not in tree:
            raise SettingsError(f"etc/paddock.yaml has no {path}")
        tree = tree[key]
    return tree
