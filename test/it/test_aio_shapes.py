"""Whether the checker of AIO's answers sees what is wrong."""

from aio_shapes import faults, operation


def test_what_is_wrong_is_seen():
    good = {"success": True, "message": "m", "hint": None,
            "data": {"session_id": "s", "command": "c", "status": "completed", "output": None,
                     "console": None, "exit_code": 0}}
    schema = operation("POST", "/v1/shell/exec")["200"]
    assert not faults(good, schema)
    for broken in ({"status": "done"}, {"session_id": 3}, {"exit_code": "0"}, {"console": [{"ps1": 1}]}):
        assert faults({**good, "data": {**good["data"], **broken}}, schema), broken
    missing = {**good, "data": {"session_id": "s"}}
    assert any("has no status" in f for f in faults(missing, schema))
    assert operation("DELETE", "/v1/shell/sessions/abc")
