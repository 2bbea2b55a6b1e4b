"""api/openapi.yaml says of the model's fields what the tables of src/model say: describe_model prints those.

Called with the program and the source root; prints TAP."""
import json
import subprocess
import sys
from pathlib import Path

import yaml

FAILED = []
COUNT = 0


def check(what, document, model):
    global COUNT
    COUNT += 1
    ok = document == model
    print(f"{'ok' if ok else 'not ok'} {COUNT} - {what}")
    if not ok:
        FAILED.append(what)
        print(f"# api/openapi.yaml: {document!r}\n# src/model: {model!r}")


def kind(schema):
    """The type without "null"."""
    found = schema.get("type")
    return next((t for t in found if t != "null"), None) if isinstance(found, list) else found


def limits(model, schemas):
    made = schemas["SandboxCreate"]["properties"]["limits"]["properties"]
    changed = schemas["SandboxChange"]["properties"]["limits"]["properties"]
    shown = schemas["Limits"]
    for name, members in (("SandboxCreate", made), ("SandboxChange", changed), ("Limits", shown["properties"])):
        check(f"limits of {name}", list(members), list(model))
        for limit in members.keys() & model.keys():
            check(f"type of {limit} in {name}", kind(members[limit]), model[limit]["type"])
    check("limits that are always there", shown["required"], [name for name, row in model.items() if row["required"]])
    for limit in made.keys() & model.keys():
        check(f"least {limit}", made[limit].get("minimum"), model[limit]["minimum"])
        check(f"{limit} is fixed", "Refused" in changed.get(limit, {}).get("description", ""), model[limit]["fixed"])


def fields(model, schemas):
    """Every plain field is in the requests and answers that the model says, with its type; what is not the model's is listed here."""
    made, changed, shown = (schemas[name]["properties"] for name in ("SandboxCreate", "SandboxChange", "Sandbox"))
    other = {"SandboxCreate": "name image backend env limits ttl_seconds on_end snapshot workspace workspaces secrets mounts egress ai metadata require",
             "SandboxChange": "metadata name ttl_seconds limits on_end"}
    for name, members, wanted in (("SandboxCreate", made, list(model)), ("SandboxChange", changed, [name for name in model if model[name]["live"]])):
        check(f"plain members of {name}", sorted(members.keys() - set(other[name].split())), sorted(wanted))
        for field in members.keys() & model.keys():
            check(f"type of {field} in {name}", kind(members[field]), kind(model[field]["schema"]))
    for field, row in model.items():
        check(f"whether a sandbox shows {field}", field in shown, row["shown"])
        if field in shown:
            check(f"type of {field} in Sandbox", kind(shown[field]), kind(row["schema"]))


def rules(model, schemas):
    """The rules of spending, as they are shown and as they are changed."""
    shown, changed = schemas["AgentLimits"], schemas["AgentLimitsChange"]["properties"]
    lists = {"agent", "wallets", "limits", "addresses", "typed", "windows", "auto_below"}
    check("plain rules that are shown", sorted(shown["properties"].keys() - lists), sorted(model))
    check("rules that are always shown", sorted(shown["required"]), sorted(lists | model.keys()))
    check("plain rules that can be changed", sorted(changed.keys() - lists), sorted(model))
    for name in model.keys() & changed.keys() & shown["properties"].keys():
        check(f"type of {name}", kind(shown["properties"][name]), model[name]["type"])
        bounds = {key: changed[name][key] for key in ("minimum", "maximum") if key in changed[name]}
        check(f"bounds of {name}", {"type": kind(changed[name])} | bounds, model[name])


def main():
    program, root = sys.argv[1:]
    model = json.loads(subprocess.run([program], check=True, capture_output=True, text=True, timeout=60).stdout)
    schemas = yaml.safe_load((Path(root) / "api/openapi.yaml").read_text(encoding="utf-8"))["components"]["schemas"]
    limits(model["limits"], schemas)
    fields(model["fields"], schemas)
    rules(model["rules"], schemas)
    print(f"1..{COUNT}")
    sys.exit(1 if FAILED else 0)


main()
