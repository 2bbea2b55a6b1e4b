"""paddock-signer alone, for tests that stand in for the keeper, the api and the owner (docs/design/signer.md).

Messages are dictionaries by the names of api/signer.proto, compiled by protoc.
"""

import mmap
import os
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import frames

ROOT = Path(__file__).resolve().parents[2]
UID = 64010
ETHER = 10**18
NATIVE = b"\xee" * 20


def _compile():
    out = tempfile.mkdtemp(prefix="signer-proto-")
    subprocess.run(["protoc", f"--python_out={out}", f"-I{ROOT / 'api'}", "signer.proto"], check=True)
    sys.path.insert(0, out)
    import signer_pb2
    return signer_pb2


pb = _compile()
# A call's type, its request and its answer.
CALLS = {
    "STATUS": (pb.Status, pb.StatusReply), "WALLET_LIST": (pb.WalletList, pb.WalletListReply), "RULES_GET": (pb.RulesGet, pb.RulesReply),
    "RULES_PUT": (pb.RulesPut, pb.RulesReply), "PAUSE": (pb.Pause, pb.Paused), "REQUEST": (pb.Request, pb.ItemReply),
    "GET": (pb.Get, pb.ItemReply), "LIST": (pb.List, pb.ListReply), "APPROVE": (pb.Approve, pb.ItemReply), "REJECT": (pb.Reject, pb.ItemReply),
    "CANCEL": (pb.Cancel, pb.ItemReply), "SIGN": (pb.Sign, pb.ItemReply), "REPORT": (pb.Report, pb.ItemReply), "SPENT": (pb.Spent, pb.SpentReply),
    "AUDIT": (pb.Audit, pb.AuditReply), "AUDIT_VERIFY": (pb.AuditVerify, pb.AuditVerified), "WALLET_ADD": (pb.WalletAdd, pb.WalletAdded),
    "WALLET_EXPORT": (pb.WalletExport, pb.WalletExported), "WALLET_REMOVE": (pb.WalletRemove, pb.WalletRemoved), "SETTLE": (pb.Settle, pb.ItemReply),
    "NONCE": (pb.Nonce, pb.NonceReply), "ABANDON": (pb.Abandon, pb.ItemReply),
}
TYPE = {name: pb.SignerType.Value("SIGNER_TYPE_" + name) for name in [*CALLS, "PEER", "CHANGED"]}


def amount(n):
    return n.to_bytes(32, "big")


def state(name):
    return pb.State.Value("STATE_" + name.upper())


class Failed(Exception):
    def __init__(self, code, message):
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


class Peer(frames.Channel):
    """A stream of one role."""

    def post(self, name, **fields):
        """Sends without waiting; the answer comes by `next`."""
        self.stream += 1
        body = CALLS[name][0](**fields).SerializeToString()
        self.end.sendall(frames.HEADER.pack(len(body), TYPE[name], frames.CALL, 0, self.stream, 0) + body)
        return self.stream

    def next(self):
        kind, number, _, body, _ = self.receive()
        while kind == frames.EVENT:  # of what others changed
            kind, number, _, body, _ = self.receive()
        if kind == frames.FAIL:
            fields = frames.decode(body)
            raise Failed(fields[1].decode(), fields.get(3, b"").decode())
        name = next(n for n, t in TYPE.items() if t == number)
        reply = CALLS[name][1]()
        reply.ParseFromString(body)
        return reply.item if name in ("REQUEST", "GET", "APPROVE", "REJECT", "CANCEL", "SIGN", "REPORT", "SETTLE", "ABANDON") else reply

    def told(self):
        """The next event: the id of a request that others changed."""
        kind, number, _, body, _ = self.receive()
        assert (kind, number) == (frames.EVENT, TYPE["CHANGED"]), (kind, number)
        return pb.Changed.FromString(body).id

    def ask(self, name, **fields):
        self.post(name, **fields)
        return self.next()

    def fails(self, name, **fields):
        try:
            self.ask(name, **fields)
        except Failed as failed:
            return failed
        return None


class Faults:
    """When the signer dies and what its clocks say: test/unit/signer/faults.c."""
    LIBRARY = ROOT / "build/release/test/unit/signer/faults.so"
    FIELDS = ("wall_ms", "boot_ms", "left", "half", "kind", "seen")
    KINDS = {"write": 1, "sync": 2, "send": 3}

    def __init__(self, path):
        self.path = Path(path)
        self.path.write_bytes(bytes(4096))
        with open(self.path, "r+b") as file:
            self.page = mmap.mmap(file.fileno(), 4096)

    def set(self, **fields):
        for name, value in fields.items():
            struct.pack_into("<q", self.page, 8 * self.FIELDS.index(name), value)

    def get(self, name):
        return struct.unpack_from("<q", self.page, 8 * self.FIELDS.index(name))[0]

    def jump(self, seconds, wall=True):
        """The clock is set, or with `wall` false the time goes by."""
        self.set(wall_ms=self.get("wall_ms") + 1000 * seconds)
        if not wall:
            self.set(boot_ms=self.get("boot_ms") + 1000 * seconds)

    @property
    def environment(self):
        return {"LD_PRELOAD": self.LIBRARY, "FAULTS_PAGE": self.path}


class Signer:
    def __init__(self, directory, faults=None):
        self.directory = Path(directory)
        self.faults = faults
        self.directory.mkdir(exist_ok=True, mode=0o700)
        os.chown(self.directory, UID, UID)
        self.start()

    def start(self):
        ours, theirs = socket.socketpair()
        fd = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        self.keeper = frames.Channel(ours)
        self.program = frames.Program("paddock-signer", [theirs, fd], PADDOCK_SIGNER_UID=UID, PADDOCK_SIGNER_KEYS=0,
                                      **(self.faults.environment if self.faults else {}))
        os.close(fd)
        self.peers = {}

    def peer(self, role):
        ours, theirs = socket.socketpair()
        body = pb.SignerPeer(role=pb.SignerRole.Value("SIGNER_ROLE_" + role)).SerializeToString()
        data = frames.HEADER.pack(len(body), TYPE["PEER"], frames.EVENT, frames.FD, 0, 0) + body
        socket.send_fds(self.keeper.end, [data], [theirs.fileno()])
        theirs.close()
        return Peer(ours)

    def _one(self, role):
        if role not in self.peers:
            self.peers[role] = self.peer(role)
        return self.peers[role]

    api = property(lambda self: self._one("API"))
    owner = property(lambda self: self._one("OWNER"))

    def kill(self):
        self.program.stop()
        for peer in [*self.peers.values(), self.keeper]:
            peer.close()

    def restart(self):
        self.kill()
        self.start()

    # ---- what most tests begin with ----

    def wallet(self, **fields):
        fields = {"kind": pb.WALLET_KIND_TEST, "label": "test", **fields}
        return self.owner.ask("WALLET_ADD", **fields).wallet

    def rules(self, scope, **fields):
        return self.owner.ask("RULES_PUT", rules=pb.Rules(scope=scope, **fields)).rules

    def agent(self, name, wallet, chain=31337, per_tx=ETHER, **fields):
        limit = pb.Limit(chain=chain, asset=NATIVE, per_tx=amount(per_tx), **{k: amount(fields.pop(k)) for k in ("day", "week", "month", "lifetime") if k in fields})
        return self.rules(f"agent:{name}", limits=[limit, *fields.pop("limits", [])], wallets=[pb.AgentWallet(chain=chain, wallet=wallet.id)], **fields)

    def spent(self, scope, asset=NATIVE, window="day"):
        for line in self.api.ask("SPENT", scope=scope).lines:
            if line.asset == asset:
                return int.from_bytes(getattr(line, window), "big")
        return 0


def facts(chain=31337, **fields):
    return pb.Facts(**{"chain_id": chain, "block": 5, "loopback": True, "nonce": 0, "gas": 21000, "max_fee": amount(2 * 10**9), "priority_fee": amount(10**9),
                       "to_has_code": True, **fields})


def request(agent="dca", to=b"\x22" * 20, value=1, **fields):
    return {"agent": agent, "kind": pb.REQUEST_KIND_TX, "chain": 31337, "to": to, "value": amount(value), "facts": facts(), **fields}
