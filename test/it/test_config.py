"""paddock.yaml, PADDOCK_* and flags: one validation, with the line of the mistake."""

import contextlib
import http.client
import json
import re
import subprocess

import pytest

import paddock


def run(*arguments, **environment):
    return subprocess.run([paddock.BIN / "paddock", *arguments], env=paddock.clean_environment(**environment),
                          capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)


def refused(tmp_path, text, **environment):
    """`paddock serve` with this file must end at once, and say why on stderr."""
    file = tmp_path / "paddock.yaml"
    file.write_text(text)
    result = run("serve", "--config", file, "--data-dir", tmp_path / "d", "--run-dir", tmp_path / "r", **environment)
    assert result.returncode != 0 and result.stdout == "", result
    assert not (tmp_path / "d").exists(), "nothing is made before the configuration is known to be good"
    return result.stderr


MISTAKES = {
    "unknown key": ("listen: 127.0.0.1:0\n\nlisen: x\n", 3, "lisen"),
    "unknown nested key": ("defaults:\n  image: machine\n  limits:\n    memory: 5\n", 4, "memory"),
    "wrong type": ("max:\n  boxes: many\n", 2, "boxes"),
    "list for a map": ("defaults:\n  - image\n", 1, "defaults"),
    "negative": ("defaults:\n  limits:\n    pids: -1\n", 3, "pids"),
    "zero memory": ("defaults:\n  limits:\n    memory_mb: 0\n", 3, "memory_mb"),
    "open files below the least": ("defaults:\n  limits:\n    nofile: 31\n", 3, "from 32 to"),
    "open files at most below the least": ("max:\n  limits:\n    nofile: 31\n", 3, "from 32 to"),
    "memory at most below the least": ("max:\n  limits:\n    memory_mb: 15\n", 3, "max.limits.memory_mb"),
    "cpu at most below the least": ("max:\n  limits:\n    cpu: 0.001\n", 3, "max.limits.cpu"),
    "duplicate key": ("listen: a\nlisten: b\n", 2, "listen"),
    "bad syntax": ("defaults:\n  image: machine\n bad\n", 3, ""),
    "tab indentation": ("defaults:\n\timage: machine\n", 2, ""),
    "anchor": ("defaults: &a\n  image: machine\nmax: *a\n", 1, ""),
    "tag": ("listen: !!python/object x\n", 1, ""),
    "two documents": ("listen: 127.0.0.1:0\n---\nlisten: x\n", 2, ""),
    "log level": ("log_level: loud\n", 1, "log_level"),
    "cert without key": ("tls:\n  cert: /x\n", None, "key"),
    "listeners that are no list": ("listeners: 127.0.0.1:80\n", 1, "listeners"),
    "listener without a dialect": ("listeners:\n  - address: 127.0.0.1:80\n", 2, "dialect"),
    "listener without a port": ("listeners:\n  - {address: nowhere, dialect: mcp}\n", None, "listeners"),
    "bad address": ("listen: nowhere\n", 1, "listen"),
    "defaults above the ceiling": ("defaults:\n  limits:\n    pids: 500\nmax:\n  limits:\n    pids: 100\n", None, "pids"),
}


@pytest.mark.parametrize("text, line, word", MISTAKES.values(), ids=MISTAKES.keys())
def test_mistakes_are_found_with_their_line(tmp_path, text, line, word):
    message = refused(tmp_path, text)
    if line:
        near = [f"line {n}" for n in (line, line + 1, line - 1)] if not word else [f"line {line}"]
        assert any(one in message for one in near), message
    assert word in message, message
    assert "paddock.yaml" in message


def test_missing_file(tmp_path):
    result = run("serve", "--config", tmp_path / "none.yaml")
    assert result.returncode != 0 and "none.yaml" in result.stderr


@pytest.mark.parametrize("variable, value", [
    ("PADDOCK_NONSENSE", "1"), ("PADDOCK_MAX_BOXES", "x"), ("PADDOCK_DEFAULTS_LIMITS_PIDS", "-5"), ("PADDOCK_LOG_LEVEL", "loud"),
])
def test_bad_variables(tmp_path, variable, value):
    message = refused(tmp_path, "", **{variable: value})
    setting = variable[8:].lower()
    assert any(name in message for name in (variable, setting, setting.replace("_", "."))), message


def test_layers(own_daemon, workdir):
    """The file, over it the variables, over them the flags."""
    file = workdir / "layers.yaml"
    file.write_text("defaults:\n  limits:\n    pids: 111\n    memory_mb: 200\n    nofile: 300\nlisten: 127.0.0.1:1\n")
    daemon = own_daemon(environment={"PADDOCK_DEFAULTS_LIMITS_PIDS": "222", "PADDOCK_LISTEN": "127.0.0.1:2"},
                        arguments=["--config", str(file)]).start()
    limits = daemon.client().create().document["limits"]
    assert (limits["pids"], limits["memory_mb"], limits["nofile"]) == (222, 200, 300)


def test_ceilings(own_daemon):
    daemon = own_daemon(environment={"PADDOCK_MAX_LIMITS_PIDS": "600", "PADDOCK_MAX_BOXES": "2", "PADDOCK_MAX_TTL_SECONDS": "60"}).start()
    api = daemon.client()
    response = api.try_create(limits={"pids": 601})
    assert (response.status, response.code()) == (400, "invalid_argument")
    response = api.try_create(ttl_seconds=61)
    assert (response.status, response.code()) == (400, "invalid_argument")
    for _ in range(2):
        assert api.create().document["expires_at"], "a ceiling on the life time is one for those who ask for none too"
    response = api.try_create()
    assert (response.status, response.code()) == (429, "quota_exceeded")
    api.delete(f"/v1/sandboxes/{api.list()[0]['id']}")
    api.create()


def test_config_show_is_what_runs(tmp_path):
    file = tmp_path / "paddock.yaml"
    file.write_text("max:\n  boxes: 17\n")
    result = run("config", "show", "--config", file, PADDOCK_DEFAULTS_USER="root")
    assert result.returncode == 0, result.stderr
    shown = json.loads(result.stdout)
    assert shown["max"]["boxes"] == 17 and shown["defaults"]["user"] == "root"
    assert run("config", "check", "--config", file).returncode == 0
    file.write_text("max:\n  boxes: x\n")
    assert run("config", "check", "--config", file).returncode != 0


def listeners(log):
    """{dialect: (address, port)} of the further listeners, as the daemon says where they are."""
    return {m[3]: (m[1], int(m[2])) for m in re.finditer(r"listening on (\S+):(\d+) for (\S+)", log)}


def test_a_further_listener_serves_its_dialect_only(own_daemon, tmp_path):
    file = tmp_path / "paddock.yaml"
    file.write_text("listeners:\n  - {address: 127.0.0.1:0, dialect: models}\n  - {address: '[::1]:0', dialect: rest}\n")
    daemon = own_daemon(arguments=["--config", str(file)]).start()
    found = listeners(daemon.log(1000))
    assert set(found) == {"models", "rest"}
    for host, port, status in (("127.0.0.1", found["models"][1], 404), ("::1", found["rest"][1], 200), (daemon.host, daemon.port, 200)):
        with contextlib.closing(http.client.HTTPConnection(host, port)) as connection:
            connection.request("GET", "/v1/sandboxes", headers={"Authorization": f"Bearer {daemon.key}"})
            assert connection.getresponse().status == status


def test_a_listener_of_no_dialect_ends_the_start(daemon_factory, tmp_path):
    file = tmp_path / "paddock.yaml"
    file.write_text("listeners: [{address: 127.0.0.1:0, dialect: klingon}]\n")
    with pytest.raises(AssertionError, match='there is no dialect "klingon"'):
        daemon_factory(arguments=["--config", str(file)]).start()


def test_a_directory_that_cannot_be_made_is_named_with_the_reason(daemon_factory):
    daemon = daemon_factory()
    daemon.data_dir.mkdir(parents=True, exist_ok=True)
    (daemon.data_dir / "vault").mkdir()
    (daemon.data_dir / "store").write_text("a file")
    with pytest.raises(AssertionError, match=r"cannot make \S*/store: Not a directory"):
        daemon.start()
