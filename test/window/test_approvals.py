"""Requests for approval on the desktop: an agent in a sandbox asks the real signer, with anvil as the chain."""

import pytest

import paddock
from agents_kit import agent, anvil, api, daemon, install, modules  # noqa: F401 - fixtures
from desktop import HOME, GLib, Inspector, Window, X, free_port
from spend_kit import Bank

APPROVALS = "Approvals · Paddock"


@pytest.fixture(scope="module")
def bank(daemon, agent):
    return Bank(daemon, agent)


@pytest.fixture(scope="module")
def waiting(bank):
    """A request that waits before the window is there: the future of its answer, and its card."""
    return bank.send(2001), bank.until_pending(2001)


@pytest.fixture(scope="module")
def window(desktop, daemon, waiting):
    port = free_port()
    it = Window(desktop, "--devtools", "--hidden", PADDOCK_URL=daemon.url, PADDOCK_API_KEY=daemon.key, WEBKIT_INSPECTOR_HTTP_SERVER=f"127.0.0.1:{port}")
    it.port = port
    yield it
    assert it.again("--quit").returncode == 0
    assert it.process.wait(30) == 0


def close(desktop, title):
    X(desktop.display).ask_to_close(title)


def test_waits_since_before(desktop, waiting, window, bank):
    """A request that waits when the program starts is told; the approvals open above other windows. Nothing is approved by that."""
    answer, item = waiting
    window.until("the request is seen", state="here", pending=1, approvals=APPROVALS)
    [notice] = paddock.until(lambda: desktop.notices, "a notice")
    name, _, _, summary, body, actions, hints, _ = notice
    assert name == "Paddock" and summary == "An agent asks for approval" and actions == ["default", "Show"] and hints["desktop-entry"] == "org.paddock.Window"
    assert "shared" in body and "Anvil" in body and "<" not in body, body
    x = X(desktop.display)
    assert x.is_above(paddock.until(lambda: x.find(APPROVALS), "the window of approvals"))
    paddock.until(lambda: desktop.items and desktop.item("Status") == "NeedsAttention", "the tray asks for attention")
    assert "Approvals (1)" in desktop.menu() and desktop.item("ToolTip")[3] == "1 request waits for approval"

    assert bank.get(item["id"])["state"] == "pending"
    assert bank.say(item["id"], "reject", note="no").status == 200
    assert answer.result(30)["status"] == 403
    window.until("nothing waits", pending=0)
    paddock.until(lambda: desktop.closed == [1], "the notice is taken back")
    assert desktop.item("Status") == "Active"


def test_comes_in(desktop, window, bank):
    """A request while the program runs, by the stream of events. The page shows it, and a click on the notice or in the menu opens it again."""
    close(desktop, APPROVALS)
    window.until("the approvals are closed", approvals="")
    before = len(desktop.notices)
    answer = bank.send(2002)
    item = bank.until_pending(2002)
    window.until("the approvals opened", pending=1, approvals=APPROVALS)
    paddock.until(lambda: len(desktop.notices) == before + 1, "another notice")
    page = Inspector(window.port, "#/approvals")
    assert page.run("location.hash") == "#/approvals"
    paddock.until(lambda: "Approve" in page.run("document.body.innerText") and "Reject" in page.run("document.body.innerText"), "the card is there")
    page.close()

    close(desktop, APPROVALS)
    window.until("the approvals are closed", approvals="")
    desktop.emit("org.freedesktop.Notifications", "ActionInvoked", GLib.Variant("(us)", (before + 1, "default")))
    window.until("a click on the notice opens them", approvals=APPROVALS)
    close(desktop, APPROVALS)
    window.until("the approvals are closed", approvals="")
    desktop.click("Approvals (1)")
    window.until("the menu opens them", approvals=APPROVALS)
    assert bank.get(item["id"])["state"] == "pending"
    assert bank.say(item["id"], "reject", note="no").status == 200
    assert answer.result(30)["status"] == 403
    window.until("nothing waits", pending=0)


def test_many_at_once(desktop, window, bank):
    """More than three that are new at once are one notice, with their number."""
    pid = next(pid for pid, name in window.processes().items() if name == "paddock-watch")
    answers = [bank.send(3000 + at) for at in range(4)]
    items = [bank.until_pending(3000 + at) for at in range(4)]
    # A watcher that ends is started again, and finds all of them.
    desktop.notices.clear()
    paddock.kill(pid)
    window.until("all are seen", state="here", pending=4)
    paddock.until(lambda: any("4 requests wait" in notice[4] for notice in desktop.notices), "one notice for all")
    for item in items:
        assert bank.say(item["id"], "reject", note="no").status == 200
    assert [answer.result(30)["status"] for answer in answers] == [403] * 4
    window.until("nothing waits", pending=0)


def test_shown_without_tray(window):
    """It was started hidden, and there is no tray to find it in."""
    window.until("is shown", visible=True, title=HOME)
