"""What the documents tell a user to do works: their commands are run against a daemon, with servers of
internet.py for those that they name; their policies, bodies and configurations are given to it.

A fence's language says what its block is: `sh` is run (all blocks of a document in one shell, in their
order; `# -> TEXT` means that the block prints TEXT), `json` is a policy or the body of a create, `yaml` a
configuration, `js` and `python` are parsed; `text` is for what cannot be run here. ID is a box. Pages of docs/tasks are run
against a daemon that has this machine's own network; `systemctl stop` and `start` in them stop and start it.
"""

import json
import os
import re
import subprocess

import pytest

import paddock
import walletconnect_kit
from internet import Internet
from spend_kit import Anvil

DIALECTS = ("docs/mcp.md", "docs/e2b.md", "docs/agentbox.md", "docs/sandkasten.md", "docs/agent-sandbox.md", "docs/aio.md")
GUIDES = ("docs/README.md", "docs/quick-start.md", "docs/concepts.md", "docs/rest.md", "docs/metrics.md", "docs/sizing.md", "docs/dashboard.md", "docs/audit.md")
WORLD = ("README.md", "docs/egress.md", "docs/secrets.md", "docs/ports.md", "docs/ai.md", *GUIDES, *DIALECTS)  # name hosts, which are played
TASKS = tuple(sorted(f"docs/tasks/{file.name}" for file in (paddock.ROOT / "docs/tasks").iterdir()))
PRODUCTION = "docs/tasks/production.md"
MONEY = "docs/tasks/let-an-agent-spend.md"
DOCS = (*WORLD, *TASKS, "docs/glossary.md")
HOSTS = ("example.org", "www.example.org", "api.example.com", "api.github.com", "other.example")
POLICY = {"default", "rules", "allow", "deny", "limits", "ech"}
UNRUN = 3  # blocks of a document


def blocks(name):
    """[(language, line, text)] of the fenced blocks."""
    found, language, start, lines = [], None, 0, []
    for number, line in enumerate((paddock.ROOT / name).read_text().splitlines(), 1):
        if line.startswith("```"):
            if language is None:
                language, start, lines = line[3:].strip(), number, []
            else:
                found.append((language, start, "\n".join(lines) + "\n"))
                language = None
        elif language is not None:
            lines.append(line)
    assert language is None, f"{name}:{start}: a block without an end"
    return found


def all_blocks(*languages):
    return [pytest.param(language, text, id=f"{name}:{line}") for name in DOCS
            for language, line, text in blocks(name) if language in languages]


def command_line(*words):
    return subprocess.run([paddock.BIN / "paddock", *words], capture_output=True, text=True, timeout=20,
                          env=paddock.clean_environment())


@pytest.fixture(scope="module")
def net(workdir):
    place = workdir / "world-docs"
    place.mkdir()
    it = Internet(place, HOSTS).start()
    for number, name in enumerate(HOSTS, 10):
        it.set(name, it.host(number))
    yield it
    it.stop()


@pytest.fixture(scope="module")
def site(daemon_factory, net):
    it = daemon_factory("docs", environment={
        "PADDOCK_GATE_DNS": net.dns, "PADDOCK_GATE_CA_FILE": net.authority})
    config = it.base / "paddock.yaml"
    config.write_text(next(text for language, _, text in blocks("docs/ai.md") if language == "yaml"))
    it.arguments += ["--config", str(config)]
    it.start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def client(site):
    it = site.client()
    yield it
    it.close()


@pytest.fixture
def box(client):
    it = client.create()
    yield it
    it.delete()


# ---- what there is


@pytest.mark.parametrize("name", DOCS)
def test_blocks_are_run_or_said_not_to_be(name):
    kinds = [language for language, _, _ in blocks(name)]
    assert set(kinds) <= {"sh", "json", "yaml", "js", "python", "text"}, kinds
    assert kinds.count("text") <= UNRUN, kinds


def test_files_that_are_named_exist():
    for name in (*DOCS, "docs/ARCHITECTURE.md"):
        text = (paddock.ROOT / name).read_text()
        named = re.findall(r"`((?:docs|etc|man)/[\w./]+)`", text)
        assert [each for each in named if not (paddock.ROOT / each).exists()] == [], name
        linked = re.findall(r"\]\(([^):#]+)\)", text)
        assert [each for each in linked if not (paddock.ROOT / name).parent.joinpath(each).exists()] == [], name
    for name in ("README.md", "docs/ARCHITECTURE.md"):
        text = (paddock.ROOT / name).read_text()
        assert "docs/egress.md" in text and "docs/secrets.md" in text


@pytest.mark.parametrize("name", DOCS)
def test_commands_and_settings_in_the_text_exist(name):
    text = re.sub(r"^```.*?^```", "", (paddock.ROOT / name).read_text(), flags=re.M | re.S)
    settings = json.loads(command_line("config", "show").stdout)
    for code in re.findall(r"`([^`]+)`", text):
        words = code.split()
        if words[0] == "paddock" and len(words) > 1 and words[1] != "help":
            shown = command_line("help", *(word for word in words[1:3] if re.fullmatch("[a-z]+", word)))
            assert shown.returncode == 0, code
            for option in (word for word in words if re.fullmatch(r"--[a-z-]+", word)):
                assert option in shown.stdout, code
        match = re.match(r"((?:egress|gate|ports|webhooks|defaults|max|data|uids|posture)(?:\.[a-z_]+)+|ai\.(?:box|tenant|max|prices|providers))(:|$)", code)
        if match:
            at = settings
            for key in match[1].split("."):
                assert key in at, f"{name}: {code}"
                at = at[key]


def test_every_reason_is_explained():
    """The table of docs/egress.md, and what the definition of the API has."""
    text = (paddock.ROOT / "docs/egress.md").read_text().split("## The log")[1].split("\n## ")[0]
    told = set(re.findall(r"^\| `(\w+)` \|", text, re.M))
    definition = (paddock.ROOT / "api/openapi.yaml").read_text().split("    EgressVerdict:")[1]
    there = set(re.search(r"enum: \[(rule,[^]]+)\]", definition)[1].split(", "))
    assert told == there - {"none", "other"}


# ---- what is said to the daemon


def test_targets(client, box):
    text = (paddock.ROOT / "docs/egress.md").read_text()
    table = text.split("| a target | is |")[1].split("\n\n")[0]
    targets = [code for row in table.splitlines()[2:] for code in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert len(targets) > 10
    for target in targets:
        response = client.post(f"{box.path}/egress/rules", {"action": "allow", "targets": [target]})
        assert response.status == 200, (target, response)


@pytest.mark.parametrize("language,text", all_blocks("json"))
def test_json(client, box, language, text):
    document = json.loads(text)
    if set(document) <= POLICY:
        response = client.send_json("PUT", f"{box.path}/egress", document)
        assert response.status == 200, response
        return
    for secret in document.get("secrets", ()):
        assert client.send_json("PUT", f"/v1/secrets/{secret['name']}", {"value": "a value"}).status in (200, 201)
    made = client.create(**document)
    made.delete()
    for name in {secret["name"] for secret in document.get("secrets", ())}:
        assert client.delete(f"/v1/secrets/{name}").status == 204


def test_the_first_policy_does_what_it_says(client, net, box):
    policy = json.loads(next(text for language, _, text in blocks("docs/egress.md") if language == "json"))
    assert client.send_json("PUT", f"{box.path}/egress", policy).status == 200

    def status(*arguments):
        return box.exec(["curl", "-s", "-m", "20", "-o", "/dev/null", "-w", "%{http_code}", *arguments]).text

    tries = [["/repos/a"], ["/admin"], ["/gists"], ["/repos/a", "-d", "x"]]
    assert [status("https://api.github.com" + path, *more) for path, *more in tries] == ["200", "403", "403", "403"]
    assert status("http://example.org/") == "000", "*.example.org is what is below it"


@pytest.mark.parametrize("name", DIALECTS)
def test_a_page_for_a_dialect(name, client):
    """How to switch, what is better, what differs; and what can be run is run."""
    text = (paddock.ROOT / name).read_text()
    headings = re.findall(r"^## (.+)$", text, re.M)
    for wanted in ("Switching", "What is better", "What differs"):
        assert any(heading.startswith(wanted) for heading in headings), headings
    assert {"sh", "js"} & {language for language, _, _ in blocks(name)}, "nothing to run"
    served = {one["name"] for one in client.get("/v1/dialects").json()["listeners"][0]["dialects"]}
    assert name.removeprefix("docs/").removesuffix(".md") in served


def test_every_dialect_has_a_page(client):
    served = {one["name"] for one in client.get("/v1/dialects").json()["listeners"][0]["dialects"]}
    assert {f"docs/{name}.md" for name in served - {"rest", "models"}} == set(DIALECTS)  # README.md and docs/ai.md are theirs


@pytest.mark.parametrize("language,text", all_blocks("python"))
def test_python(language, text):
    compile(text, "a document", "exec")


@pytest.mark.parametrize("language,text", all_blocks("yaml", "js"))
def test_yaml_and_js(tmp_path, language, text):
    file = tmp_path / ("it.yaml" if language == "yaml" else "it.mjs")
    file.write_text(text)
    out = command_line("config", "check", "--config", str(file)) if language == "yaml" else \
        subprocess.run(["node", "--check", file], capture_output=True, text=True, timeout=60)
    assert out.returncode == 0, out.stderr


# ---- what is run


def steps_of(name):
    return [(line, text) for language, line, text in blocks(name) if language == "sh"]


def run_steps(name, steps, site, place):
    """Runs blocks in one shell in `place`, which looks like a checkout, and holds what they print against what they say."""
    if not (place / "build").exists():
        (place / "build").mkdir()
        (place / "build" / "bin").symlink_to(paddock.BIN)
        (place / "var").mkdir()
        (place / "var" / "lib").symlink_to(site.data_dir)
    script = "set -eu -o pipefail\n"
    for line, text in steps:
        script += f"exec > out.{line} 2>&1\n{text}\n"
    environment = paddock.clean_environment(
        PADDOCK_URL=site.url, PADDOCK_KEY_FILE=site.data_dir / "admin.key", GITHUB_TOKEN="ghp_of-nobody", OPENAI_API_KEY="sk-of-nobody",
        PATH=f"{paddock.BIN}:{os.environ['PATH']}", api=f"{site.url}/v1", auth=f"Authorization: Bearer {site.key}")
    ran = subprocess.run(["bash", "-c", script], cwd=place, env=environment, stdin=subprocess.DEVNULL, timeout=300 * paddock.SLOW)
    printed = {line: out.read_text() for line, _ in steps if (out := place / f"out.{line}").exists()}
    assert ran.returncode == 0, f"{name}:{max(printed)}: {printed[max(printed)]}"
    for line, text in steps:
        for want in re.findall(r"-> (.+)$", text, re.M):
            assert want in printed[line], f"{name}:{line}: no {want!r} in {printed[line]}"


@pytest.mark.parametrize("name", [name for name in WORLD if steps_of(name)])
def test_commands(name, site, net, box, tmp_path):
    (tmp_path / "policy.json").write_text(json.dumps({"allow": ["example.org"]}))
    (tmp_path / "key.pem").write_text("a key\n")
    steps = [(line, re.sub(r"\bNAME\b", "default", re.sub(r"\bID\b", box.id, text).replace("http://127.0.0.1:7080", site.url)))
             for line, text in steps_of(name)]
    run_steps(name, steps, site, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in TASKS if name not in (PRODUCTION, MONEY)])
def test_tasks(name, daemon, api, tmp_path):
    before = {box["id"] for box in api.list()}
    run_steps(name, steps_of(name), daemon, tmp_path)
    assert {box["id"] for box in api.list()} == before, "a page removes what it has made"


@pytest.mark.slow
def test_an_agent_spends(daemon_factory, tmp_path):
    """With a chain at another port than the page's, and as root, who needs no sudo."""
    chain = Anvil(walletconnect_kit.programs())
    try:
        config = tmp_path / "chain.yaml"
        config.write_text(next(text for language, _, text in blocks(MONEY) if language == "yaml").replace(":8545", f":{chain.port}"))
        site = daemon_factory("docs-money", arguments=["--config", str(config)]).start()
        steps = [(line, text.replace("sudo paddock", f"PADDOCK_RUN_DIR={site.run_dir} paddock")) for line, text in steps_of(MONEY)]
        run_steps(MONEY, steps, site, tmp_path)
        assert chain.balance("0x70997970C51812dc3A010C7d01b50e0d17dc79C8") == 10000 * 10**18 + 5 * 10**16
        assert site.client().get("/v1/agents").json()["agents"] == [] and site.client().get("/v1/wallets").json()["wallets"] == []
        site.finish()
    finally:
        chain.stop()


@pytest.mark.slow
def test_production(own_daemon, tmp_path):
    """Backup and restore bring everything back: files of sandboxes, snapshots, images, workspaces, secrets and keys."""
    site = own_daemon().start()
    api = site.client()
    box = api.create(name="kept", limits={"memory_mb": 64})
    box.check("echo of the sandbox > /workspace/a; mkdir ~/b; chmod 700 ~/b")
    assert api.post(f"{api.create(name='still').path}/pause", {}).status == 200
    api.post(f"{box.path}/snapshots", {"name": "then"})
    assert api.post("/v1/images", {"name": "of-then", "snapshot": "then"}).status == 201
    assert api.post("/v1/workspaces", {"name": "files"}).status == 201
    writer = api.create(workspace="files")
    writer.check("printf 'of the workspace' > /workspace/b")
    writer.delete()
    assert api.send_json("PUT", "/v1/secrets/TOKEN", {"value": "of the vault"}).status in (200, 201)
    for line, text in steps_of(PRODUCTION):
        text = text.replace("/var/lib/paddock", str(site.data_dir)).replace("/srv/backup", str(tmp_path / "backup"))
        for part in re.split(r"^(systemctl \w+ paddock)$", text, flags=re.M):
            if part.startswith("systemctl "):
                # What happens between a backup and its restore is lost.
                if "rm -rf" in text and part.split()[1] == "stop":
                    box.with_client(site.client()).delete()
                {"stop": site.stop, "start": site.start}[part.split()[1]]()
            elif part.strip():
                run_steps(PRODUCTION, [(line, part)], site, tmp_path)
    api = site.client()
    box = box.with_client(api)
    assert box.get()["status"] == "running"
    assert box.check("cat /workspace/a; stat -c '%U %a' ~/b") == "of the sandbox\nuser 700\n"
    others = [api.create(snapshot="then"), api.create(image="of-then"), api.create(workspace="files", secrets=[{"name": "TOKEN", "env": "T"}])]
    assert [others[0].check("cat /workspace/a"), others[1].check("ls -d ~/b")] == ["of the sandbox\n", "/home/user/b\n"]
    assert others[2].check("cat /workspace/b; echo; echo $T") == "of the workspace\nof the vault\n"
