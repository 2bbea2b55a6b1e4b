# /v1/sandbox/hooks: commands that run before the sandbox is stopped or deleted. They are kept in ~/.aio/hooks.json, and
# written as a script to where the daemon looks for one then.
import shlex

HOOKS = os.path.join(HOME, "hooks.json")
PROGRAM = os.path.expanduser("~/.config/paddock/farewell")
COUNT = 64


def read():
    try:
        with open(HOOKS, encoding="utf-8") as f:
            return json.load(f)
    except (FileNotFoundError, ValueError):
        return []


def script(hooks):
    """Those of one priority run at the same time, the lowest first."""
    lines = ["#!/bin/bash", "# Made by AIO's /v1/sandbox/hooks.", f"exec >>{shlex.quote(os.path.join(HOME, 'hooks.log'))} 2>&1"]
    for priority in sorted({h["priority"] for h in hooks}):
        for h in hooks:
            if h["priority"] == priority:
                lines.append(f"timeout -k 1 {h['timeout']:g} bash -c {shlex.quote(h['command'])} </dev/null &")
        lines.append("wait")
    return "\n".join(lines) + "\n"


def replace(path, text, mode):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path + ".new", mode)
    os.rename(path + ".new", path)


def write(hooks):
    replace(HOOKS, json.dumps(hooks), 0o600)
    if hooks:
        replace(PROGRAM, script(hooks), 0o700)
    elif os.path.exists(PROGRAM):
        os.unlink(PROGRAM)


def main(what, name="", command="", timeout="10", priority="100"):
    hooks = read()
    if what == "list":
        done(sorted(hooks, key=lambda h: (h["priority"], h["name"])))
    others = [h for h in hooks if h["name"] != name]
    if what == "remove":
        if len(others) == len(hooks):
            refuse(f"there is no hook {name!r}")
        write(others)
        done(None, "The hook is removed")
    if len(others) >= COUNT:
        refuse(f"a sandbox has at most {COUNT} hooks")
    made = {"name": name, "event": "shutdown", "command": command, "timeout": float(timeout), "priority": int(priority), "source": "api"}
    write(others + [made])
    done(made)


run(main)
