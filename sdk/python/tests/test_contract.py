"""The SDK has every route and every field of api/openapi.yaml, with types."""

import ast
import dataclasses
import inspect
import subprocess
import sys
import typing

import generate
import pytest
from conftest import ROOT, SDK

import paddock
from paddock import _operations, errors, events, models
from paddock._async import client as async_client, files as async_files, network as async_network, processes as async_processes
from paddock._async import resources as async_resources, sandbox as async_sandbox

MODULES = (async_client, async_files, async_network, async_processes, async_resources, async_sandbox)
# What a method returns instead of the bare answer, and the answer that it is made of.
HANDLES = {"Sandbox": "SandboxInfo", "Process": "ProcessStarted", "Context": "ContextInfo", "Watcher": "CreateWatcherAnswer"}
PLAIN = {"changeMode": int, "listPorts": str}


def classes(flavour):
    for module in MODULES:
        module = sys.modules[module.__name__.replace("_async", f"_{flavour}")]
        yield from (each for each in vars(module).values() if inspect.isclass(each) and each.__module__ == module.__name__)


def methods(flavour):
    return _operations.operations(*classes(flavour))


OPERATIONS = {name: (path, method, item, item[method]) for path, item in generate.DOCUMENT["paths"].items() for method in generate.METHODS
              if method in item for name in [item[method]["operationId"]]}


def members(operation, item):
    """What a request can say besides its path: parameters and the members of a JSON body."""
    for parameter in map(generate.resolve, [*item.get("parameters", ()), *operation.get("parameters", ())]):
        if parameter["in"] != "path":
            yield parameter["name"]
    for kind, content in generate.resolve(operation.get("requestBody", {})).get("content", {}).items():
        if kind == "application/json":
            yield from generate.merged(content["schema"]).get("properties", {})


@pytest.mark.parametrize("flavour", ("sync", "async"))
def test_no_route_without_a_method(flavour):
    assert len(OPERATIONS) > 100
    assert set(OPERATIONS) - set(methods(flavour)) == set(), "without a method"
    assert set(methods(flavour)) - set(OPERATIONS) == set(), "not of the API"


@pytest.mark.parametrize("name", OPERATIONS)
def test_no_member_of_a_request_without_a_parameter(name):
    _, _, item, operation = OPERATIONS[name]
    for member in members(operation, item):
        for method in methods("sync")[name]:
            _, fields, fixed = method.operation
            parameter = inspect.signature(method).parameters.get(fields.get(member, member))
            if parameter is not None:
                assert parameter.annotation not in (inspect.Parameter.empty, "Any"), f"{method.__qualname__}({parameter.name}) has no type"
                break
            if member in fixed:
                break
        else:
            pytest.fail(f"no method of {name} takes {member}")


def types_in(annotation):
    """All classes in an annotation."""
    found = {annotation} if inspect.isclass(annotation) else set()
    return found.union(*(types_in(each) for each in typing.get_args(annotation)))


@pytest.mark.parametrize("name", OPERATIONS)
def test_answers_have_their_types(name):
    *_, operation = OPERATIONS[name]
    returned = set()
    for method in methods("sync")[name]:
        hint = typing.get_type_hints(method, vars(sys.modules[method.__module__]) | {"Sandbox": paddock.Sandbox, "Paddock": paddock.Paddock,
                                                                                    "Unpack": typing.Optional})["return"]
        assert hint is not typing.Any, f"{method.__qualname__} returns anything"
        returned |= types_in(hint)
    names = {each.__name__ for each in returned}
    names |= {HANDLES[each] for each in names if each in HANDLES}
    for status, response in operation["responses"].items():
        content = generate.resolve(response).get("content", {}).get("application/json", {}).get("schema")
        if not status.startswith("2") or not content or name in PLAIN and PLAIN[name] in returned or name == "openapi":
            continue
        for each in content.get("oneOf", [content]):
            wanted = answer_class(name, response, each)
            assert wanted in names, f"{name} returns {names}, not {wanted}"


def answer_class(name, response, schema):
    if "$ref" in schema:
        wanted = schema["$ref"].rpartition("/")[2]
        if wanted in ("Secrets", "FileList"):
            return {"Secrets": "Secret", "FileList": "FileInfo"}[wanted]  # the method returns the list, of all pages
        return generate.RENAMED.get(wanted, wanted)
    shape = generate.merged(schema)
    values = list(shape.get("properties", {}).values())
    if len(values) == 1 and values[0].get("type") == "array":
        wanted = values[0]["items"]["$ref"].rpartition("/")[2]
        return generate.RENAMED.get(wanted, wanted)
    if name == "forkSandbox":
        return "SandboxInfo"
    return generate.answer_name(name, response)


def check_fields(schema, hint, where, seen):
    """Every property of a schema is a typed field of the class that the hint has."""
    plain, nullable = generate.split_null(schema)
    if "$ref" in plain:
        plain = generate.split_null(generate.resolve(plain))[0]
    plain = generate.merged(plain)
    if nullable:
        assert type(None) in types_in(hint), f"{where} may be null"
    if plain.get("type") == "array":
        below = next((each for each in types_of_list(hint)), None)
        return check_fields(plain["items"], below, where, seen)
    if not plain.get("properties"):
        if plain.get("type") in ("string", "integer", "number", "boolean"):
            assert hint is not typing.Any, f"{where} has no type"
        return None
    owner = next((each for each in types_in(hint) if dataclasses.is_dataclass(each)), None)
    assert owner, f"{where} has no class: {hint}"
    if owner in seen:
        return None
    hints = typing.get_type_hints(owner)
    for key, below in plain["properties"].items():
        assert generate.field_name(key) in hints, f"{where}.{key}"
        check_fields(below, hints[generate.field_name(key)], f"{where}.{key}", seen | {owner})
    return None


def types_of_list(hint):
    if typing.get_origin(hint) is list:
        yield typing.get_args(hint)[0]
    for each in typing.get_args(hint):
        yield from types_of_list(each)


def test_no_field_of_an_answer_without_a_type():
    checked = 0
    for name, (*_, operation) in OPERATIONS.items():
        for status, response in operation["responses"].items():
            schema = generate.resolve(response).get("content", {}).get("application/json", {}).get("schema", {})
            for each in schema.get("oneOf", [schema]):
                if not status.startswith("2") or not generate.merged(each).get("properties"):
                    continue
                target = each["$ref"].rpartition("/")[2] if "$ref" in each else generate.answer_name(name, response)
                owner = getattr(models, generate.RENAMED.get(target, target), None)
                assert owner or is_list(each), f"{name} has no class"
                if owner:
                    check_fields(each, owner, name, frozenset())
                    checked += 1
    assert checked > 60


def is_list(schema):
    values = list(generate.merged(schema).get("properties", {}).values())
    return len(values) == 1 and values[0].get("type") == "array"


@pytest.mark.parametrize("schema, kinds", [
    ("StreamEvent", {"start": events.Started, "stdout or stderr": events.Output, "exit": events.Exited}),
    ("ExecutionEvent", {"start": events.StartedCode, "stdout or stderr": events.Output, "end": events.Ended, "result": models.ExecutionResult,
                        "error": models.ExecutionError})])
def test_events_have_all_fields(schema, kinds):
    for variant in generate.SCHEMAS[schema]["oneOf"]:
        if schema == "StreamEvent" and variant["description"] == "error":
            continue  # an exception
        fields = {field.name for field in dataclasses.fields(kinds[variant["description"]])}
        assert set(generate.merged(variant)["properties"]) - {"type"} <= fields, variant["description"]


def test_every_code_of_an_error_has_a_class():
    assert set(errors.CODES) == set(generate.SCHEMAS["ErrorCode"]["enum"])
    assert set(errors.BY_STATUS.values()) <= set(errors.CODES) and set(errors.ADVICE) <= set(errors.CODES)


def test_generated_files_are_up_to_date():
    stale = [str(path) for path, text in generate.outputs().items() if path.read_text() != text]
    assert stale == [], "run sdk/python/generate"


def mypy(*what):
    return subprocess.run([sys.executable, "-m", "mypy", "--strict", "--config-file", SDK / "mypy.ini", "--cache-dir", ROOT / "build" / "sdk-python" / "mypy", *what], cwd=SDK / "src",
                          capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path), "PATH": "/usr/bin:/bin", "MYPYPATH": str(SDK / "src")})


def test_the_types_are_strict():
    """mypy --strict over the package, and over a program that uses it."""
    done = mypy("-p", "paddock")
    assert done.returncode == 0, done.stdout + done.stderr
    used = mypy("-c", "from paddock import Sandbox\nreveal_type(Sandbox.create(name='a').run('x').exit_code)\nSandbox.create(nmae='a')\n")
    assert '"builtins.int"' in used.stdout or '"int"' in used.stdout, used.stdout
    assert "nmae" in used.stdout, "a misspelt option is found"
    assert (SDK / "src" / "paddock" / "py.typed").exists()


def test_the_syntax_is_that_of_python_3_9():
    for path in sorted((SDK / "src").rglob("*.py")):
        ast.parse(path.read_text(), str(path), feature_version=(3, 9))
        assert "from __future__ import annotations" in path.read_text() or "|" not in path.read_text(), path
