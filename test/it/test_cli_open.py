"""`paddock open`: the address of the dashboard's page, and who starts which browser with it."""

import json
import os
import shutil
import subprocess

import pytest

import paddock
from clitool import Cli

NOBODY = 65534


@pytest.fixture(scope="module")
def box(api):
    with paddock.boxes_of(api) as make:
        yield make(name="opened")


@pytest.fixture(scope="module")
def url(daemon, box):
    return f"{daemon.url}/#/sandboxes/{box.id}"


@pytest.fixture
def place(workdir, request):
    """A directory that everybody may write to, with a program `browser` that notes how it was called."""
    it = workdir / f"open-{abs(hash(request.node.name))}"
    it.mkdir()
    it.chmod(0o777)
    browser = it / "browser"
    browser.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {it}/words\nenv > {it}/env\n")
    browser.chmod(0o755)
    (it / "fails").write_text(f"#!/bin/sh\ntouch {it}/failed\nexit 3\n")
    (it / "fails").chmod(0o755)
    yield it
    shutil.rmtree(it)


def words(place):
    return (place / "words").read_text().splitlines()


def test_root_gets_the_address(daemon, box, url, place):
    (place / "xdg-open").symlink_to("browser")
    cli = Cli(daemon, DISPLAY=":0", PATH=f"{place}:{os.environ['PATH']}")
    for name in (box.id, "opened", box.id[:12]):
        assert cli.ok("open", name) == url + "\n"
    assert not (place / "words").exists(), "a browser that runs as root"
    assert daemon.key not in url


def test_print_and_json(daemon, box, url, place):
    cli = Cli(daemon, BROWSER=place / "browser")
    assert cli.ok("open", "--print", box.id) == cli.ok("open", "-p", box.id) == url + "\n"
    assert cli.json("open", box.id) == {"url": url}
    assert not (place / "words").exists()


def test_browser_is_started(daemon, box, url, place):
    cli = Cli(daemon, BROWSER=place / "browser")
    done = cli("open", box.id)
    assert (done.returncode, done.out, done.err) == (0, "", "")
    assert words(place) == [url]
    given = (place / "env").read_text()
    assert daemon.key not in given and "PADDOCK_" not in given, "the browser does not get the key"


@pytest.mark.parametrize("wish, want", [("{0}/browser --new %s --last", ["--new", "URL", "--last"]), ("{0}/browser  -a", ["-a", "URL"]),
                                        ("{0}/nothing:{0}/fails:{0}/browser", ["URL"]), (":{0}/browser:{0}/fails", ["URL"]),
                                        ("{0}/browser $(touch${{IFS}}{0}/x);touch {0}/y", ["$(touch${{IFS}}{0}/x);touch", "{0}/y", "URL"])])
def test_wish_of_a_browser(daemon, box, url, place, wish, want):
    """It is a list of commands and not of a shell's."""
    assert Cli(daemon, BROWSER=wish.format(place)).ok("open", box.id) == ""
    assert words(place) == [url if word == "URL" else word.format(place) for word in want]
    assert not (place / "x").exists() and not (place / "y").exists()
    assert (place / "failed").exists() == wish.startswith("{0}/nothing")


@pytest.mark.parametrize("wish", ["{0}/nothing", "{0}/fails", "{0}", " ", ":", "%s", "{0}/browser" + "x" * 2000])
def test_without_a_browser(daemon, box, url, place, wish):
    assert Cli(daemon, BROWSER=wish.format(place)).ok("open", box.id) == url + "\n"


@pytest.mark.parametrize("display", [{"DISPLAY": ":0"}, {"WAYLAND_DISPLAY": "wayland-0"}, {}], ids=["x11", "wayland", "none"])
def test_desktop(daemon, box, url, place, display):
    """Somebody who is not root and has a desktop: xdg-open knows their browser."""
    (place / "xdg-open").symlink_to("browser")
    shutil.copy(paddock.BIN / "paddock", place)
    environment = paddock.clean_environment(PADDOCK_URL=daemon.url, PADDOCK_API_KEY=daemon.key, PATH=f"{place}:{os.environ['PATH']}", HOME=place, **display)
    done = subprocess.run([place / "paddock", "open", box.id], env=environment, capture_output=True, text=True, timeout=60, cwd="/",
                                  user=NOBODY, group=NOBODY, extra_groups=[], check=False)
    assert done.returncode == 0, done
    if display:
        assert (done.stdout, words(place)) == ("", [url])
    else:
        assert done.stdout == url + "\n" and not (place / "words").exists()


def test_the_dashboard_itself(daemon):
    """That needs no key."""
    assert Cli(daemon, PADDOCK_API_KEY="pdk_wrong").ok("open", "--print") == f"{daemon.url}/\n"


def test_unknown_sandbox(daemon, place):
    cli = Cli(daemon, BROWSER=place / "browser")
    assert "nobody-has-this-name" in cli.refused("open", "nobody-has-this-name")
    assert not (place / "words").exists()
    assert json.loads(cli.ok("open", "--json"))["url"].endswith("/")
