"""What the programs say without a sandbox is as recorded: help, completion, settings, routes, error codes, names of variables."""

import json
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

import paddock
from golden_kit import Normal, compare, difference, parse, render, shape


def paddock_says(*words, **environment):
    """A command that needs no daemon: what it printed, and what it complained of."""
    done = subprocess.run([paddock.BIN / "paddock", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          env=paddock.clean_environment(HOME="/nonexistent", **environment), check=False)
    return "\n".join(part for part in (done.stdout, done.stderr) if part)


def paddock_succeeds(*words):
    done = subprocess.run([paddock.BIN / "paddock", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          env=paddock.clean_environment(HOME="/nonexistent"), check=False)
    assert done.returncode == 0, (words, done)
    return done.stdout


# ---- the comparison itself ----


def test_a_difference_is_seen():
    before = {"a": "one\ntwo", "b": "same"}
    assert difference(before, dict(before)) == ""
    assert parse(render(before)) == before
    assert "-two" in difference(before, {**before, "a": "one\n2"}) and "+2" in difference(before, {**before, "a": "one\n2"})
    assert difference(before, {"a": before["a"]}) == "no longer there: b"
    assert difference(before, {**before, "c": "new"}) == "not recorded: c\nnew"


@pytest.mark.parametrize("changed", [
    {"id": "abcdefghij0123456789", "at": "2026-01-02T03:04:05.678Z", "n": 2, "l": [{"k": True}]},
    {"id": "abcdefghij0123456789", "at": "2026-01-02T03:04:05.678Z", "n": 1.0, "l": [{"k": True}]},
    {"at": "2026-01-02T03:04:05.678Z", "id": "abcdefghij0123456789", "n": 1, "l": [{"k": True}]},
    {"id": "abcdefghij0123456789", "at": None, "n": 1, "l": [{"k": True}]},
    {"id": "abcdefghij0123456789", "at": "2026-01-02T03:04:05.678Z", "n": 1, "l": [{"k": True}, 1]},
    {"id": "abcdefghij0123456789", "at": "2026-01-02T03:04:05.678Z", "n": 1, "l": [{"k": "true"}]},
    {"id": "abc", "at": "2026-01-02T03:04:05.678Z", "n": 1, "l": [{"k": True}]},
])
def test_what_is_behaviour_stays_in_an_answer(changed):
    """A constant, its type, the order of members, whether there is a value: nothing of that is taken away."""
    def text(document):
        return json.dumps(Normal().document(document))

    one = {"id": "abcdefghij0123456789", "at": "2026-01-02T03:04:05.678Z", "n": 1, "l": [{"k": True}]}
    assert text(changed) != text(one)
    for other in ("zbcdefghij0123456780", "qdxmnjwpgqtdjpkbkrts"):
        assert text({**one, "id": other, "at": "2027-01-02T03:04:05Z"}) == text(one)


def test_what_differs_is_taken_away():
    normal = Normal({"127.0.0.1:4711": "daemon", "0" * 20: "nobody"}, figures="used")
    assert normal.text(f"http://127.0.0.1:4711/{'0' * 20} pdk_{'a1' * 20} sha256:{'0a' * 32}") == "http://<daemon>/<nobody> <key> <digest>"
    assert normal.document({"used": 5, "duration_ms": 7, "limit": 5, "free": {"used": 0}}) == \
        {"used": "<number>", "duration_ms": "<number>", "limit": 5, "free": {"used": 0}}
    assert shape({"a": [1, 2.5, None, "x"], "b": {"c": False}}) == {"a": ["null", "number", "string"], "b": {"c": "boolean"}}


# ---- the command line ----


def test_help():
    """Every command's help, by both ways to ask for it."""
    listing = paddock_succeeds("help")
    names = [line[2:18].strip() for line in listing.splitlines() if line.startswith("  ")]
    assert len(names) > 100
    with ThreadPoolExecutor(2) as pool:
        helps = dict(zip(names, pool.map(lambda name: paddock_succeeds(*name.split(), "--help"), names)))
        others = dict(zip(names, pool.map(lambda name: paddock_succeeds("help", *name.split()), names)))
    assert helps == others
    compare("help", {"help": listing, "--help": paddock_succeeds("--help"), "without a command": paddock_says(),
                     **{f"{name} --help": text for name, text in helps.items()}})


def test_completion():
    compare("completion", {shell: paddock_succeeds("completion", shell) for shell in ("bash", "zsh", "fish")})


def test_variables():
    """The names of environment variables in the sources; those of settings are with the settings."""
    texts = (path.read_text() for path in (paddock.ROOT / "src").rglob("*.[ch]"))
    names = {name for text in texts for name in re.findall(r'"(PADDOCK_[A-Z][A-Z_]*[A-Z])[="]', text)}
    compare("variables", {"variables": "\n".join(sorted(names))})


def test_error_codes():
    """Name, HTTP, gRPC and Connect of every error, from the one table."""
    rows = re.findall(r'^X\(\w+,\s+"(\w+)",\s+(\d+),\s+(\d+), "(\w+)"\)', (paddock.ROOT / "src/base/err_codes.def").read_text(), re.M)
    compare("errors", {name: f"HTTP {http}, gRPC {grpc}, Connect {connect}" for name, http, grpc, connect in rows})


def test_routes():
    """`paddock-api --routes`, sorted below its headings."""
    done = subprocess.run([paddock.BIN / "paddock-api", "--routes"], capture_output=True, text=True, timeout=10, check=True)
    found, heading = {}, "rest"
    for line in filter(None, map(str.strip, done.stdout.splitlines())):
        if line.startswith("#"):
            heading = line.strip("# ")
            found.setdefault(heading, [])
        else:
            found.setdefault(heading, []).append(line)
    compare("routes", {heading: "\n".join(sorted(routes, key=lambda route: route.split()[::-1])) for heading, routes in found.items()})


# ---- settings ----

WRONG = {"text": "text", "long text": "x" * 1100, "-1": -1, "1e18": 10**18, "0": 0, "0.001": 0.001, "true": True, "a list": ["text"],
         "an object": {"nothing": "text"}, "null": None}
MACHINE = {"max.limits.cpu", "max.limits.memory_mb", "egress.sets", "egress.sources"}  # by default, what the machine has


def leaves(document, path=""):
    for name, value in document.items():
        if isinstance(value, dict) and value:
            yield from leaves(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def nested(path, value):
    for name in reversed(path.split(".")):
        value = {name: value}
    return value


def test_settings(workdir):
    """Of each setting the default, what is said of values that it cannot have (with its bounds), and its variable."""
    empty = workdir / "empty.yaml"
    empty.write_text("egress: {sets: {}, detect: false}\n")
    shown = yaml.safe_load(paddock_succeeds("config", "show", "--config", str(empty)))
    normal = Normal({str(workdir): "dir"})

    def section(setting):
        name, default = setting
        variable = f"PADDOCK_{name.upper().replace('.', '_')}"
        lines = [f"default: {'<machine>' if name in MACHINE else json.dumps(default)}"]
        for word, value in WRONG.items():
            file = workdir / f"{name}.yaml"
            file.write_text(json.dumps(nested(name, value)))
            said = paddock_says("config", "check", "--config", str(file)).strip()
            lines.append(f"{word}: {normal.text(said.replace(str(file), '<file>'))}")
        for text in ("text", "-1", "{"):
            said = paddock_says("config", "check", "--config", str(empty), **{variable: text}).strip()
            lines.append(f"{variable}={text}: {normal.text(said.replace(str(empty), '<file>'))}")
        return "\n".join(lines)

    settings = list(leaves(shown))
    with ThreadPoolExecutor(2) as pool:
        found = dict(zip((name for name, _ in settings), pool.map(section, settings)))
    found["unknown"] = paddock_says("config", "check", "--config", str(empty), PADDOCK_NOTHING="1").strip()
    compare("settings", found)
