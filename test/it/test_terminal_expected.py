"""A terminal as people expect it: prompt, TERM and LANG, `ps`, and an end with a warning."""

import json
import re

import paddock
from events import Stream
from test_terminal import BINARY, connect  # noqa: F401


def test_prompt_and_variables(make_box, connect):  # noqa: F811
    box = make_box(name="prompted")
    ws = connect(box, "term=vt220&lang=xx_XX.UTF-8&cwd=/home/user")
    ws.control()
    ws.send(BINARY, "echo $TERM=$LANG=$(locale charmap)\n")
    ws.read_until(rb"vt220=C.UTF-8=UTF-8\r\n")
    ws = connect(box, "cwd=/home/user")
    ws.control()
    ws.read_until(re.escape(b"user@prompted\x1b[00m:\x1b[01;34m~\x1b[00m$ "))
    assert connect(box, "term=a%20b").status == 400


def test_ps_does_not_show_our_source(box):
    box.client.post(f"{box.path}/exec", {"command": "true", "shell": "s"})
    shown = box.check("ps ax -o args=")
    assert "__paddock" not in shown and "builtin" not in shown, shown
    own = box.client.post(f"{box.path}/exec", {"command": "ps -p $$ -o args=; echo $0", "shell": "s"}).json()
    assert own["stdout"] == "bash\nbash\n"
    ran = box.client.post(f"{box.path}/exec", {"command": "env | grep -c __paddock; [[ -v __paddock ]]; echo $?", "shell": "s"}).json()
    assert ran["stdout"] == "0\n1\n"


def test_a_list_of_processes_does_not_show_how_ours_start(box):
    box.client.post(f"{box.path}/exec", {"command": "true", "shell": "s"})
    made = [box.client.post(f"{box.path}/contexts", {"language": language}).json()["id"] for language in ("python", "javascript", "bash")]
    shown = [process["argv"] for process in box.client.get(f"{box.path}/processes").json()["processes"] if process["tag"] and process["running"]]
    assert {" ".join(argv) for argv in shown} == {"bash", "python3", "node"}, shown
    for context in made:
        assert box.client.delete(f"{box.path}/contexts/{context}").status == 204


def test_ps_does_not_show_how_contexts_start(box):
    for language, name in (("python", "python3"), ("javascript", "node"), ("bash", "bash --norc -s")):
        made = box.client.post(f"{box.path}/contexts", {"language": language}).json()
        code = {"python": "import os; print(open('/proc/self/cmdline').read().rstrip('\\0').replace('\\0', ' '), os.read(0, 1))",
                "javascript": "console.log(require('fs').readFileSync('/proc/self/cmdline', 'utf8').replace(/\\0+$/, ''))",
                "bash": "tr '\\0' ' ' </proc/$$/cmdline; cat"}[language]
        ran = box.client.post(f"{box.path}/contexts/{made['id']}/execute", {"code": code}).json()
        assert name in json.dumps(ran), ran
        shown = [line.strip() for line in box.check("ps ax -o args=").splitlines()]
        assert name in shown, shown
        assert not [line for line in shown if "250" in line or "import" in line or "require" in line], shown
        box.client.delete(f"{box.path}/contexts/{made['id']}")


def started(box, script):
    stream = Stream(box.client, "POST", box.path + "/processes", {"argv": ["/bin/sh", "-c", script], "kill_on_disconnect": True})
    return stream, next(iter(stream))[1]["pid"]


def ended(box, pid):
    shown = box.client.get(f"{box.path}/processes/{pid}").json()
    return not shown["running"] and shown["exit"]


def test_a_client_that_hangs_up_lets_the_command_tidy_up(box):
    stream, pid = started(box, "trap 'echo bye >/tmp/bye; exit 5' HUP; touch /tmp/ready; while :; do sleep 0.05; done")
    paddock.until(lambda: box.exec(["test", "-e", "/tmp/ready"]).exit_code == 0, "it runs")
    stream.close()
    assert paddock.until(lambda: ended(box, pid), "it has ended")["exit_code"] == 5
    assert box.check("cat /tmp/bye") == "bye\n"


def test_one_that_does_not_listen_is_killed(box):
    stream, pid = started(box, "trap '' HUP; touch /tmp/stubborn; while :; do sleep 0.05; done")
    paddock.until(lambda: box.exec(["test", "-e", "/tmp/stubborn"]).exit_code == 0, "it runs")
    stream.close()
    assert paddock.until(lambda: ended(box, pid), "it has ended")["signal"] == "SIGKILL"
