"""The time zone of a box: in its files, so that every program finds it, and kept over its life."""

import tarfile

import pytest

import paddock
from clitool import Cli
from test_images import Tar

# A day in summer and one in winter, as seconds since 1970.
SUMMER, WINTER = 1751328000, 1735689600
SHOWN = f"date -d @{SUMMER} +%H%z; date -d @{WINTER} +%H%z"


def test_programs_see_it(make_box):
    box = make_box(timezone="Europe/Berlin")
    assert box.document["timezone"] == "Europe/Berlin"
    assert box.check(SHOWN).split() == ["02+0200", "01+0100"]
    assert box.check("readlink /etc/localtime; cat /etc/timezone").split() == ["/usr/share/zoneinfo/Europe/Berlin", "Europe/Berlin"]
    assert box.check(f"python3 -c 'import time; print(time.localtime({SUMMER}).tm_hour)'") == "2\n"
    assert box.check("node -p 'Intl.DateTimeFormat().resolvedOptions().timeZone'") == "Europe/Berlin\n"
    assert box.check("env | grep -c ^TZ= || true") == "0\n", "no variable that a login would lose"
    assert box.check("sudo date +%Z -d @0") == "CET\n"


def test_an_image_without_zones(api, make_box):
    tar = Tar()
    tar.add("bin/date", tarfile.SYMTYPE, link="busybox")
    assert api.request("PUT", "/v1/images/nozones", tar.bytes(), {"Content-Type": "application/x-tar"}).status in (200, 201)
    try:
        box = make_box(image="nozones", timezone="America/New_York")
        assert box.check([*"/bin/sh -c".split(), SHOWN.replace("-d @", "-d@")]).split() == ["20-0400", "19-0500"]
        box.delete()
    finally:
        api.delete("/v1/images/nozones")


def test_the_minimal_file_is_good_for_others(make_box):
    """What is written where an image has none is read by glibc (above), Python and Node, too."""
    box = make_box(timezone="America/New_York")
    name = "/usr/share/zoneinfo/Europe/Berlin"
    box.check(f"rm {name}", user="root")
    snapshot = box.client.post(f"{box.path}/snapshots", {}).json()["id"]
    box = make_box(snapshot=snapshot, timezone="Europe/Berlin")
    assert int(box.check(f"stat -c %s {name}")) < 200
    assert box.check(SHOWN).split() == ["02+0200", "01+0100"]
    assert box.check("python3 -c \"import zoneinfo, datetime; "
                     f"print(datetime.datetime.fromtimestamp({SUMMER}, zoneinfo.ZoneInfo('Europe/Berlin')).hour)\"") == "2\n"
    assert box.check("node -p 'Intl.DateTimeFormat().resolvedOptions().timeZone'") == "Europe/Berlin\n"


@pytest.mark.parametrize("wrong, hint", [("Europe/Berln", "did you mean Europe/Berlin?"), ("berlin", "did you mean Europe/Berlin?"),
                                         ("../../etc/passwd", "such as Europe/Berlin"), ("x" * 300, "such as"), ("Europe", "")])
def test_an_unknown_zone_is_refused(api, wrong, hint):
    answer = api.post("/v1/sandboxes", {"timezone": wrong})
    assert answer.status == 400 and "time zone" in answer.json()["error"]["message"] and hint in answer.json()["error"]["message"]


def test_it_stays(make_box):
    box = make_box(timezone="Asia/Tokyo")
    assert box.client.post(f"{box.path}/stop", {}).status == 200
    assert box.client.post(f"{box.path}/start", {}).status == 200
    assert box.check("date -d @0 +%z") == "+0900\n"
    forked = box.client.post(f"{box.path}/fork", {"count": 1}).json()["sandboxes"][0]
    twin = paddock.Box(box.client, forked)
    assert twin.document["timezone"] == "Asia/Tokyo" and twin.check("date -d @0 +%z") == "+0900\n"
    twin.delete()


def test_a_readonly_root_has_the_variable(make_box):
    box = make_box(timezone="Asia/Tokyo", readonly_root=True)
    assert box.check("date -d @0 +%z; echo $TZ").split() == ["+0900", "Asia/Tokyo"]


def test_defaults_and_command_line(own_daemon):
    daemon = own_daemon(environment={"PADDOCK_DEFAULTS_TIMEZONE": "Asia/Kolkata"}).start()
    cli = Cli(daemon)
    assert cli.ok("run", "--", "date", "-d", "@0", "+%z") == "+0530\n"
    assert cli.ok("run", "--tz", "UTC", "--", "date", "-d", "@0", "+%z") == "+0000\n"
    assert "did you mean Asia/Tokyo" in cli.refused("run", "--tz", "Asia/Tokio", "true")
