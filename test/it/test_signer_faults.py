"""paddock-signer killed at every write of every step, with clocks that jump, and with a full disk: docs/design/signer.md, "Storage"."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

import frames
import pytest
import signer as rig
from signer import ETHER, NATIVE, Failed, amount, facts, pb, request, state

FEE = b"\xff" * 20
OPEN = ("pending", "approved")
# States whose amounts no longer count.
FREE = ("denied", "rejected", "expired", "cancelled", "wallet_rejected")
SETTLED = "settled"
# Requests that are signed in the beginning, and what was reported of each.
SIGNED = {"speed": (), "stop": (), "sent": (), "failed": (), "lost": ("broadcast",), "other": ("broadcast",), "mines": ("broadcast",), "mined": ("broadcast", "included"),
          "odd": ("broadcast", "included"), "sure": ("broadcast", "included", "confirmed"), "deep": ("broadcast", "included", "confirmed"),
          "gone": ("broadcast", "replaced"), "back": ("broadcast", "dropped"), "settled": ("broadcast", "replaced"),
          "undone": ("broadcast", "included", "reverted"), "ended": ("broadcast", "replaced")}


@pytest.fixture
def faults(tmp_path):
    os.chmod(tmp_path, 0o711)
    return rig.Faults(tmp_path / "faults")


@pytest.fixture
def signer(tmp_path, faults):
    one = rig.Signer(tmp_path / "signer", faults)
    yield one
    one.kill()


def name_of(number):
    return pb.State.Name(number)[6:].lower()


def approve(signer, item, by="ann", **more):
    return signer.api.ask("APPROVE", id=item.id, digest=item.digest, by=by, facts=facts(**more))


def report(signer, item, *names, **more):
    for name in names:
        item = signer.api.ask("REPORT", id=item.id, state=state(name), **more)
    return item


# ---- the sweep ----


class World:
    """Two wallets, an agent of each, and a request in every state that a step begins with."""

    def __init__(self, signer):
        self.signer, self.items, self.values = signer, {}, 0
        self.here = signer.wallet()
        self.spare = signer.wallet(kind=pb.WALLET_KIND_GENERATED, label="spare")
        self.away = signer.wallet(kind=pb.WALLET_KIND_EXTERNAL, address=b"\x77" * 20)
        listed = [pb.AddressRule(chain=31337, address=b"\x99" * 20)]
        signer.agent("dca", self.here, max_pending=100, allow_messages=True, addresses=listed, auto_below=amount(1), expiry_s=7 * 86400)
        signer.agent("two", self.here, max_pending=100, approvers=2, expiry_s=7 * 86400)
        signer.agent("far", self.away, max_pending=100, expiry_s=7 * 86400, allow_messages=True)
        signer.agent("old", self.here, max_pending=100, expiry_s=3600)
        for name in ("pending", "again", "reject"):
            self.ask(name)
        for name in ("approved", "cancel", *SIGNED):
            approve(signer, self.ask(name))
        self.ask("first vote", agent="two")
        approve(signer, self.ask("second vote", agent="two"))
        self.ask("expires", agent="old")
        approve(signer, self.ask("message", message=b"hello"))
        for name in SIGNED:
            self.items[name] = signer.api.ask("SIGN", id=self.items[name].id, facts=facts())
        for name, way in SIGNED.items():
            report(signer, self.items[name], *way)
        for name in ("give", "refuse", "hang", "edit", "hash", "late"):
            approve(signer, self.ask(name, agent="far"))
        for name in ("refuse", "hang", "edit", "hash", "late"):
            report(signer, self.items[name], "awaiting_wallet")
        approve(signer, self.ask("far message", agent="far", message=b"far"))
        report(signer, self.items["far message"], "awaiting_wallet")
        report(signer, self.items["edit"], "broadcast", hash=b"h" * 32)
        report(signer, self.items["late"], "wallet_timeout")
        for name in ("late", "settled", "undone"):
            signer.owner.ask("SETTLE", id=self.items[name].id, note="no answer")

    def ask(self, name, message=None, **fields):
        self.values += 1
        fields = {**request(value=self.values, idem_key=name), **fields}
        if message:
            fields = {**fields, "kind": pb.REQUEST_KIND_MESSAGE, "to": b"", "value": b"", "data": message}
        item = self.signer.api.ask("REQUEST", **fields)
        assert item.state == state("pending"), item.error
        self.items[name] = item
        return item

    def steps(self):
        """Each with the state that it leads to, in an order in which all of them can be done."""
        items = self.items

        def on(name, call, **fields):
            return {"call": call, "fields": {"id": items[name].id, **fields}, "item": name}

        def vote(name):
            return on(name, "APPROVE", digest=items[name].digest, by="bob", facts=facts())

        def told(name, to, **fields):
            return on(name, "REPORT", state=state(to), **fields)
        new = request(value=1000, idem_key="new")
        return {
            "request": ({"call": "REQUEST", "fields": new}, "pending"),
            "denied": ({"call": "REQUEST", "fields": request(value=2 * ETHER, idem_key="denied")}, "denied"),
            "automatic": ({"call": "REQUEST", "fields": request(value=1, to=b"\x99" * 20, idem_key="auto")}, "approved"),
            "approve": (vote("pending"), "approved"), "first vote": (vote("first vote"), "pending"), "second vote": (vote("second vote"), "approved"),
            "reject": (on("reject", "REJECT", by="ann", note="no"), "rejected"), "cancel pending": (on("again", "CANCEL", by="agent"), "cancelled"),
            "cancel approved": (on("cancel", "CANCEL", by="agent"), "cancelled"),
            "sign": (on("approved", "SIGN", facts=facts()), "signed"), "sign message": (on("message", "SIGN", facts=facts()), "signed"),
            "speed up": (on("speed", "SIGN", facts=facts(), mode=pb.SIGN_MODE_SPEED_UP, generation=1), "signed"),
            "replace by nothing": (on("stop", "SIGN", facts=facts(), mode=pb.SIGN_MODE_CANCEL, generation=1), "signed"),
            "broadcast": (told("sent", "broadcast"), "broadcast"), "dropped": (told("lost", "dropped"), "dropped"), "replaced": (told("other", "replaced"), "replaced"),
            "included": (told("mines", "included", block=7, block_hash=b"b" * 32), "included"), "confirmed": (told("mined", "confirmed"), "confirmed"),
            "final": (told("sure", "final"), "final"), "reorg": (told("deep", "broadcast"), "broadcast"), "reverted": (told("odd", "reverted"), "reverted"),
            "sent again": (told("back", "broadcast"), "broadcast"), "settled and sent again": (told("settled", "broadcast"), "broadcast"), "failed": (told("failed", "failed"), "failed"),
            "settled and undone": (told("undone", "broadcast"), "broadcast"), "ended for good": (told("ended", "replaced", sure=True), "replaced"),
            "settle": ({**on("gone", "SETTLE", note="seen"), "role": "owner"}, SETTLED),
            "to a wallet": (told("give", "awaiting_wallet"), "awaiting_wallet"), "wallet refuses": (told("refuse", "wallet_rejected"), "wallet_rejected"),
            "wallet hangs": (told("hang", "wallet_timeout"), "wallet_timeout"), "wallet's hash": (told("hash", "broadcast", hash=b"g" * 32), "broadcast"),
            "wallet signs": (told("far message", "broadcast", signature=b"s" * 65), "broadcast"), "wallet is late": (told("late", "broadcast", hash=b"l" * 32), "broadcast"),
            "edited": (told("edit", "mismatch", actual=[pb.Effect(asset=NATIVE, amount=amount(5), to=b"\x22" * 20)]), "mismatch"),
            "expiry": ({"call": "SPENT", "fields": {"scope": "agent:old"}, "item": "expires", "late": 3601}, "expired"),
            "rules": ({"call": "RULES_PUT", "fields": {"rules": pb.Rules(scope="agent:new", approvers=3)}, "role": "owner"}, None),
            "add a wallet": ({"call": "WALLET_ADD", "fields": {"kind": pb.WALLET_KIND_GENERATED, "label": "more"}, "role": "owner"}, None),
            "remove a wallet": ({"call": "WALLET_REMOVE", "fields": {"id": self.spare.id}, "role": "owner"}, None),
            "pause": ({"call": "PAUSE", "fields": {"paused": True, "cancel_pending": True}}, None),  # the last: it ends the others
        }


def everything(signer):
    """What must hold between any two steps: the audit log is whole, the sums are those of the requests, a signature is unique."""
    assert signer.api.ask("AUDIT_VERIFY").broken_at == 0
    items = {i.id: i for i in signer.api.ask("LIST", max=500).items}
    actions = [(e.action, e.object) for e in audit(signer)]
    counted = Counter()
    for item in items.values():
        name = name_of(item.state)
        if name in FREE or (("settle", item.id) in actions and name != "broadcast"):
            continue
        for effect in item.effects:
            counted[f"agent:{item.agent}"] += int.from_bytes(effect.amount, "big")
            counted[f"wallet:{item.wallet}"] += int.from_bytes(effect.amount, "big")
        if name == "mismatch":
            counted[f"agent:{item.agent}"] += 5
            counted[f"wallet:{item.wallet}"] += 5
    for scope in counted:
        assert signer.spent(scope) == counted[scope], scope
    return items


def audit(signer):
    entries, after = [], 0
    while page := signer.api.ask("AUDIT", after=after, max=500).entries:
        entries += page
        after = page[-1].seq
    return entries


def attempt(signer, step, left=0, half=0, kind=None):
    """The step with a death at its call number `left`: what was answered, or None, and whether it died."""
    peer = signer.owner if step.get("role") == "owner" else signer.api
    peer.ask("STATUS")  # the channel is there
    signer.faults.set(left=left, half=half, kind=signer.faults.KINDS.get(kind, 0), seen=0)
    if step.get("late"):
        signer.faults.jump(step["late"], wall=False)
    answer = None
    with contextlib.suppress(EOFError, ConnectionError, Failed):
        peer.post(step["call"], **step["fields"])
        answer = peer.next()
    return answer, left > 0 and signer.faults.get("left") == 0


def after_death(signer, step, to, answer, raws):
    """It starts again; the step can be asked for again, and then has happened once."""
    signer.kill()
    signer.faults.set(left=0)
    signer.start()
    before, item = everything(signer), None
    if answer is not None and hasattr(answer, "digest"):
        assert before[answer.id].state == answer.state and before[answer.id].hash == answer.hash
    peer = signer.owner if step.get("role") == "owner" else signer.api
    try:
        item = peer.ask(step["call"], **step["fields"])
    except Failed as failed:  # it was done before the end
        assert failed.code in ("wrong_state", "not_found"), failed
        if step["call"] != "WALLET_REMOVE":
            item = signer.api.ask("GET", id=step["fields"]["id"])
    if to is None:
        check_thing(signer, step, item)
    else:
        item = signer.api.ask("GET", id=step["id"]) if "late" in step else item
        assert to == SETTLED or name_of(item.state) == to
        if item.raw:
            raws.setdefault(item.id, set()).add((item.generation, item.raw))
            if item.id in before and before[item.id].generation:
                assert before[item.id].hash == item.hash or before[item.id].generation < item.generation
    everything(signer)


def check_thing(signer, step, answer):
    call, wallets = step["call"], signer.api.ask("WALLET_LIST").wallets
    if call == "WALLET_REMOVE":
        assert step["fields"]["id"] not in [w.id for w in wallets]
    elif call == "WALLET_ADD":
        assert answer.wallet.id in [w.id for w in wallets]
    elif call == "RULES_PUT":
        assert signer.api.ask("RULES_GET", scope="agent:new").rules.approvers == 3
    else:
        assert signer.api.ask("STATUS").paused and not signer.api.ask("LIST", state=state("pending")).items


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Made once; every step begins with a copy of it."""
    base = tmp_path_factory.mktemp("world")
    os.chmod(base, 0o711)
    faults = rig.Faults(base / "faults")
    one = rig.Signer(base / "signer", faults)
    made = World(one)
    everything(one)
    one.kill()
    return made, base / "signer"


@pytest.fixture(scope="module")
def counts(world):
    """How many calls each step makes that change a file or send an answer: the last three are a write, the sync and the answer."""
    made, kept = world
    with copied(kept) as signer:
        numbers = {}
        for name, (step, _) in made.steps().items():
            answer, died = attempt(signer, step)
            assert answer is not None and not died, name
            numbers[name] = signer.faults.get("seen")
        everything(signer)
    assert min(numbers.values()) >= 5, numbers
    return numbers


@contextlib.contextmanager
def copied(kept):
    with tempfile.TemporaryDirectory(prefix="sweep-") as base:
        os.chmod(base, 0o711)
        where = Path(base, "signer")
        shutil.copytree(kept, where)
        for file in (where, *where.iterdir()):
            os.chown(file, rig.UID, rig.UID)
        signer = rig.Signer(where, rig.Faults(Path(base, "faults")))
        try:
            yield signer
        finally:
            signer.kill()


# Which call of a step is its last: by its number of all n, or the first of a kind. One by one, all of them: PADDOCK_SWEEP=all.
POINTS = {"1": lambda n: 1, "n/2": lambda n: n // 2, "n-4": lambda n: n - 4, "n-2": lambda n: n - 2, "sync": "sync", "send": "send"}
if os.environ.get("PADDOCK_SWEEP") == "all":
    POINTS = {str(k): lambda n, k=k: min(k, n) for k in range(1, 40)}


@pytest.mark.parametrize("half", [0, 1], ids=["before", "half"])
@pytest.mark.parametrize("point", POINTS)
def test_killed_in_every_step(world, counts, point, half):
    """kill -9 before a call that changes a file or sends an answer, or in the middle of a write: in every step of every state."""
    made, kept = world
    where = POINTS[point]
    kind = where if isinstance(where, str) else None
    if half and kind:
        return  # only writes have halves
    raws, deaths = {}, 0
    with copied(kept) as signer:
        for name, (step, to) in made.steps().items():
            if "item" in step:
                step["id"] = made.items[step["item"]].id
            answer, died = attempt(signer, step, 1 if kind else where(counts[name]), half, kind)
            assert died or answer is not None, f"{name}: neither an answer nor an end"
            deaths += died
            after_death(signer, step, to, answer, raws)
        assert all(len(each) == len({generation for generation, _ in each}) for each in raws.values()), "one generation, two signatures"
        # The number of writes depends on what the pages hold: the others were simply done.
        assert deaths == len(counts) if kind else deaths > len(counts) / 2
        signer.kill()
        with contextlib.closing(sqlite3.connect(signer.directory / "signer.db")) as db:
            assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert db.execute("SELECT count(*) FROM signatures").fetchone() == db.execute("SELECT count(DISTINCT hash) FROM signatures").fetchone()


def test_killed_while_it_is_made(tmp_path, faults):
    """The first start: key, database and schema. Whatever is there afterwards, the next start makes a whole one of it."""
    left, deaths, died = 0, 0, True
    while died:
        left += 1 if left < 8 else 5
        faults.set(left=left, half=left % 2, kind=0)
        one = rig.Signer(tmp_path / str(left), faults)
        try:
            one.api.ask("STATUS")
            died = False
        except (EOFError, ConnectionError):
            deaths += 1
            one.kill()
        faults.set(left=0)
        if died:
            one.start()
        wallet = one.wallet(kind=pb.WALLET_KIND_GENERATED)
        one.restart()
        assert list(one.api.ask("WALLET_LIST").wallets) == [wallet]
        one.kill()
    assert deaths > 10


# ---- one commit for many, and none ----


def commits(signer):
    """Of SQLite's log: a frame with the database's size ends a transaction."""
    log = (signer.directory / "signer.db-wal").read_bytes()
    salt = log[16:24]
    heads = [log[at:at + 24] for at in range(32, len(log) - 23, 24 + 4096)]
    return sum(head[8:16] == salt and head[4:8] != bytes(4) for head in heads)


def test_calls_that_come_together_share_a_commit(signer):
    wallet = signer.wallet()
    signer.agent("dca", wallet, max_pending=1000, day=40)
    before, sent = commits(signer), b""
    for n in range(60):
        body = pb.Request(**request(value=1, to=(n + 1).to_bytes(20, "big"))).SerializeToString()
        sent += frames.HEADER.pack(len(body), rig.TYPE["REQUEST"], frames.CALL, 0, n + 1, 0) + body
    signer.api.end.sendall(sent)
    items = [signer.api.next() for _ in range(60)]
    assert Counter(name_of(i.state) for i in items) == {"pending": 40, "denied": 20}  # each is judged with those before it
    assert commits(signer) - before <= 10
    everything(signer)


def test_full_disk_refuses_and_forgets_nothing(tmp_path, faults):
    """A batch that cannot be written is refused as a whole, the ledger in memory follows the disk, and all goes on when there is room."""
    os.chmod(tmp_path, 0o711)
    where = tmp_path / "small"
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1500k,mode=711", "tmpfs", where], check=True)
    try:
        one = rig.Signer(where / "signer", faults)
        wallet = one.wallet()
        one.agent("dca", wallet, max_pending=5000, day=ETHER)
        kept = refused = 0
        with open(where / "filler", "wb", buffering=0) as filler:
            with contextlib.suppress(OSError):
                while filler.write(bytes(4096)):
                    pass
            filler.truncate(filler.tell() - 200 * 1024)
        for n in range(3):
            kept += one.api.ask("REQUEST", **request(value=1, to=(n + 1).to_bytes(20, "big"))).state == state("pending")
        for n in range(300):
            one.api.post("REQUEST", **request(value=1, to=(n + 1000).to_bytes(20, "big")))
        for _ in range(300):
            try:
                kept += one.api.next().state == state("pending")
            except Failed as failed:
                assert failed.code == "storage_full"
                refused += 1
        assert refused > 0 and one.spent("agent:dca") == kept and kept >= 3
        assert one.api.ask("RULES_GET", scope="agent:dca").rules.max_pending == 5000
        os.unlink(where / "filler")
        assert one.api.ask("REQUEST", **request(value=7, to=b"\x66" * 20)).state == state("pending")
        assert one.spent("agent:dca") == kept + 7
        everything(one)
        one.restart()
        assert one.spent("agent:dca") == kept + 7
        one.kill()
    finally:
        subprocess.run(["umount", "-l", where], check=True)


# ---- clocks ----

DAY, HOUR = 24 * 3600, 3600


def spend(signer, value, **fields):
    item = signer.api.ask("REQUEST", **request(value=value, **fields))
    if item.state == state("pending"):
        item = approve(signer, item)
        item = signer.api.ask("SIGN", id=item.id, facts=facts())
    return item


def test_setting_the_clock_while_it_runs_frees_nothing(signer, faults):
    wallet = signer.wallet()
    signer.agent("dca", wallet, day=10, week=100)
    assert spend(signer, 10).state == state("signed")
    for seconds in (40 * DAY, -80 * DAY, 40 * DAY):
        faults.jump(seconds)
        assert signer.spent("agent:dca") == 10
        assert spend(signer, 1).error == "Total spending limit exceeded"
    faults.jump(DAY - 60, wall=False)
    assert spend(signer, 1).error == "Total spending limit exceeded"
    faults.jump(60, wall=False)  # a day is over
    assert spend(signer, 1).state == state("signed")
    assert signer.spent("agent:dca") == 1 and signer.spent("agent:dca", window="week") == 11
    assert signer.api.ask("AUDIT_VERIFY").broken_at == 0


def test_what_was_settled_and_is_sent_again_counts_from_then(signer, faults):
    """Its bytes are public: whoever sends a replaced transaction after a reorganisation spends at that moment, and not when it was signed."""
    wallet = signer.wallet()
    signer.agent("dca", wallet, day=10, week=25)
    item = spend(signer, 10)
    report(signer, item, "broadcast", "dropped", "replaced")
    signer.owner.ask("SETTLE", id=item.id, note="something else has its nonce")
    assert signer.spent("agent:dca") == 0
    faults.jump(2 * DAY, wall=False)
    assert spend(signer, 7).state == state("signed")
    report(signer, item, "broadcast")
    for _ in range(2):
        assert signer.spent("agent:dca") == signer.spent(f"wallet:{wallet.id}") == 17 == signer.spent("agent:dca", window="week")
        assert spend(signer, 1).error == "Total spending limit exceeded"
        signer.restart()
    faults.jump(DAY, wall=False)
    assert signer.spent("agent:dca") == 0 and signer.spent("agent:dca", window="week") == 17
    assert spend(signer, 8).state == state("signed")


def test_setting_the_clock_between_starts(signer, faults):
    wallet = signer.wallet()
    signer.agent("dca", wallet, day=10, allow_messages=True)
    assert spend(signer, 10).state == state("signed")
    faults.jump(-30 * DAY)
    signer.restart()
    assert spend(signer, 1).error == "Total spending limit exceeded"  # back: nothing is freed
    times = [entry.ts_ms for entry in audit(signer)]
    assert times == sorted(times)
    faults.jump(30 * DAY + DAY)
    signer.restart()
    assert spend(signer, 1).state == state("signed")  # forward: whoever sets the machine's clock is root


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("approved", [False, True])
def test_requests_expire_by_the_clock(signer, faults, restart, approved):
    wallet = signer.wallet()
    signer.agent("dca", wallet, day=10, expiry_s=600, allow_messages=True)
    item = signer.api.ask("REQUEST", **request(value=10))
    note = signer.api.ask("REQUEST", agent="dca", kind=pb.REQUEST_KIND_MESSAGE, chain=31337, data=b"x", facts=facts())
    if approved:
        approve(signer, item)
        approve(signer, note)
    if restart:
        signer.kill()
    faults.jump(590, wall=False)
    if restart:
        signer.start()
    open_state = state("approved" if approved else "pending")
    assert signer.api.ask("GET", id=item.id).state == open_state
    # Setting the clock back does not make them live longer: the newest entry has a time, also one without an amount.
    assert signer.api.ask("REQUEST", **request(value=11)).state == state("denied")
    faults.jump(-HOUR)
    signer.restart()
    signer.api.ask("STATUS")  # it has looked at the clock
    faults.jump(20, wall=False)
    assert signer.spent("agent:dca") == 0
    for each in (item, note):
        assert signer.api.ask("GET", id=each.id).state == state("expired")
        assert signer.api.fails("APPROVE", id=each.id, digest=each.digest, by="ann", facts=facts()).code == "wrong_state"
        assert signer.api.fails("SIGN", id=each.id, facts=facts()).code == "wrong_state"


def test_cool_down_follows_the_time_and_not_the_clock(signer, faults):
    wallet = signer.wallet()
    signer.agent("dca", wallet, cool_down_s=HOUR)
    item = signer.api.ask("REQUEST", **request(value=1))
    approve(signer, item)
    faults.jump(2 * HOUR)
    assert signer.api.fails("SIGN", id=item.id, facts=facts()).code == "unavailable"
    faults.jump(-2 * HOUR)
    signer.restart()
    assert signer.api.fails("SIGN", id=item.id, facts=facts()).code == "unavailable"
    faults.jump(HOUR, wall=False)
    assert signer.api.ask("SIGN", id=item.id, facts=facts()).state == state("signed")


def test_hours_follow_the_clock(signer, faults):
    """Monday, 9 to 17, UTC."""
    wallet = signer.wallet()
    signer.agent("dca", wallet, windows=[pb.Window(days=1, from_minute=9 * 60, to_minute=17 * 60)], day=ETHER)
    now = time.time()
    monday = (int(now) // DAY - 4) // 7 * 7 * DAY + 11 * DAY  # the next Monday, 00:00
    for seconds, allowed in ((9 * HOUR - 1, False), (9 * HOUR, True), (17 * HOUR - 2, True), (17 * HOUR, False), (DAY + 10 * HOUR, False), (-14 * HOUR, False)):
        faults.set(wall_ms=int((monday + seconds + 0.2 - time.time()) * 1000))
        item = signer.api.ask("REQUEST", **request(value=1))
        assert (item.state == state("pending")) == allowed, seconds
        if allowed:
            signer.api.ask("CANCEL", id=item.id, by="agent")
        else:
            assert item.error == "Spending is not allowed at this hour"


def test_refusals_of_more_than_an_hour_ago_suspend_nobody(signer, faults):
    wallet = signer.wallet()
    signer.agent("dca", wallet, suspend_after=3)
    for n in range(4):
        assert signer.api.ask("REQUEST", **request(value=2 * ETHER + n)).error.startswith("Requested amount")
        faults.jump(HOUR // 2 + 1, wall=False)
    for n in range(2):
        assert signer.api.ask("REQUEST", **request(value=3 * ETHER + n)).error.startswith("Requested amount")
    assert signer.api.ask("REQUEST", **request(value=1)).error == "Agent is paused"
