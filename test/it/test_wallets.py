"""Wallets with a real daemon: the signer's life, the owner's channel and who may not use it, and the commands of the owner."""

import ctypes
import json
import os
import re
import resource
import signal
import socket
import stat
import struct
import subprocess
import sys

import npm
import paddock
import pytest
import signer as rig
from canary import memory_has, tree_has
from clitool import Cli
from pathlib import Path
from signer import pb

CHAIN = "eip155:31337"
FIRST = "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"  # of the well-known test accounts
CONTRACT = "0x5FbDB2315678afecb367f032d93F642f64180aa3"
TOKEN = "0xe7f1725E7734CE288F8367e1Bb143E90bb3F0512"
ETHERS = Path(__file__).parent / "eth"
PASSWORD = "correct horse"


@pytest.fixture(scope="module")
def daemon(daemon_factory, workdir):
    config = workdir / "wallets.yaml"
    config.write_text(json.dumps({"agents": {"chains": {CHAIN: {"rpc": ["http://127.0.0.1:9/"]}, "eip155:10": {"rpc": ["http://127.0.0.1:9/"]}}}}))
    it = daemon_factory("wallets", arguments=["--config", str(config)]).start()
    yield it
    it.finish()


@pytest.fixture(scope="module")
def cli(daemon):
    return Cli(daemon, PADDOCK_RUN_DIR=daemon.run_dir)


@pytest.fixture
def api(daemon):
    client = daemon.client()
    yield client
    client.close()


@pytest.fixture
def password(tmp_path):
    path = tmp_path / "password"
    path.write_text(PASSWORD + "\n")
    return path


@pytest.fixture
def agent(api):
    """An agent that is installed and has no files yet: its manifest is enough here."""
    made = []

    def make(name, **more):
        manifest = {"name": name, "version": "1.0.0", "runtime": "node", "entrypoint": "index.js",
                    "permissions": {"chains": [CHAIN, "eip155:10"], **more.pop("permissions", {})}, **more}
        response = api.post("/v1/agents", {"manifest": manifest, "name": name, "consent": True})
        assert response.status == 201, response
        made.append(response.json()["id"])
        return made[-1]

    yield make
    for it in made:
        assert api.delete(f"/v1/agents/{it}").status == 204


def may_lock_much():
    """As root without CAP_SYS_RESOURCE (24), the limit of locked memory cannot be raised."""
    return bool(int(paddock.proc_status("self")["CapEff"], 16) >> 24 & 1) or resource.getrlimit(resource.RLIMIT_MEMLOCK)[1] == resource.RLIM_INFINITY


def owner(daemon):
    """The owner's channel, as the command line opens it."""
    end = socket.socket(socket.AF_UNIX)
    end.settimeout(30 * paddock.SLOW)
    end.connect(str(daemon.run_dir / "owner.sock"))
    return rig.Peer(end)


def signers(daemon):
    return [pid for pid, name in daemon.programs().items() if name == "paddock-signer"]


def signer_pid(daemon):
    return paddock.until(lambda: signers(daemon), "there is a paddock-signer")[0]


def kill_signer(daemon):
    pid = signer_pid(daemon)
    daemon.api_kills += 1
    paddock.kill(pid)
    assert paddock.wait_gone(pid)
    paddock.until(lambda: signers(daemon) not in ([], [pid]), "the keeper has started another")


def ask(daemon, name, **fields):
    """One call as the owner; again while the signer is on its way up."""
    def attempt():
        peer = owner(daemon)
        try:
            return peer.ask(name, **fields)
        except (rig.Failed, ConnectionError, EOFError) as failed:
            if isinstance(failed, rig.Failed) and failed.code != "unavailable":
                raise
            return None
        finally:
            peer.close()

    return paddock.until(attempt, f"the signer answers {name}")


# ---- life ----------------------------------------------------------------


def test_there_is_no_signer_until_it_is_needed(own_daemon):
    daemon = own_daemon().start()
    client = daemon.client()
    assert client.create().check("echo hello") == "hello\n"
    made = client.post("/v1/agents", {"manifest": {"name": "x", "version": "1.0.0", "runtime": "node", "entrypoint": "index.js"}, "consent": True})
    assert client.delete(f"/v1/agents/{made.json()['id']}").status == 204  # it was allowed nothing: nobody is asked to take it back
    assert signers(daemon) == [] and not (daemon.data_dir / "signer").exists()
    client.close()
    daemon.restart()
    assert signers(daemon) == [] and not (daemon.data_dir / "signer").exists()
    assert len(ask(daemon, "WALLET_LIST").wallets) == 0
    assert len(signers(daemon)) == 1
    home = (daemon.data_dir / "signer").stat()
    assert stat.S_IMODE(home.st_mode) == 0o700 and home.st_uid == home.st_gid == 59006
    for name in ("signer.db", "master.key"):
        about = (daemon.data_dir / "signer" / name).stat()
        assert stat.S_IMODE(about.st_mode) == 0o600 and about.st_uid == 59006
    daemon.restart()
    paddock.until(lambda: signers(daemon), "once it was used it starts with the daemon")


def test_posture(daemon, cli):
    cli.ok("wallet", "ls")
    pid = signer_pid(daemon)
    about = paddock.proc_status(pid)
    assert about["Uid"].split() == about["Gid"].split() == ["59006"] * 4 and about["Groups"] == ""
    assert about["NoNewPrivs"] == "1" and about["Seccomp"] == "2"
    assert {about[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert re.search(r"Max core file size\s+0\s+0", paddock.read(f"/proc/{pid}/limits"))
    assert os.stat(f"/proc/{pid}/environ").st_uid == 0, "it can be dumped"
    assert int(about["VmLck"].split()[0]) > 0
    assert os.readlink(f"/proc/{pid}/root") == str(daemon.data_dir / "signer")
    held = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    inside = str(daemon.data_dir / "signer")
    strange = [link for link in held if not link.startswith((inside, "socket:", "anon_inode:[event", "/dev/null")) and link not in
               (str(daemon.log_file), "pipe:")]
    assert [link for link in strange if not link.startswith("pipe:")] == []
    # Sockets that it has are its peers': none of a network.
    inodes = {link[8:-1] for link in held if link.startswith("socket:")}
    networks = "".join(paddock.read(f"/proc/{pid}/net/{kind}") for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "packet"))
    assert not {line.split()[9] for line in networks.splitlines() if len(line.split()) > 9} & inodes


def test_killed_programs_come_back_with_the_wallets(daemon, cli):
    made = cli.json("wallet", "new", "lasting")
    for kill in (kill_signer, kill_signer, lambda d: d.kill_api(), lambda d: d.restart()):
        kill(daemon)
        assert made["id"] in [w.id for w in ask(daemon, "WALLET_LIST").wallets]
    assert len(signers(daemon)) == 1
    cli.environment["PADDOCK_URL"] = daemon.url


def test_the_api_finds_the_signer_again(daemon, cli, api):
    made = cli.json("wallet", "new", "seen")

    def seen():
        response = api.get("/v1/wallets")
        assert response.status in (200, 503), response
        return response.status == 200 and made["id"] in [w["id"] for w in response.json()["wallets"]]

    for _ in range(3):
        paddock.until(seen, "the api lists the wallet")
        kill_signer(daemon)
    paddock.until(seen, "the api lists the wallet")
    daemon.kill_api()
    paddock.until(lambda: daemon.client().get("/v1/wallets").status == 200, "so does the next api")


def test_a_signer_that_cannot_open_its_store_says_why(own_daemon):
    daemon = own_daemon().start()
    ask(daemon, "WALLET_ADD", kind=pb.WALLET_KIND_GENERATED, label="x")
    daemon.stop()
    key = daemon.data_dir / "signer/master.key"
    kept = key.read_text()
    key.unlink()
    daemon.start()
    tool = Cli(daemon, PADDOCK_RUN_DIR=daemon.run_dir)
    assert "the master key is missing" in tool.refused("wallet", "ls")
    assert not key.exists()
    key.write_text(kept)
    os.chmod(key, 0o600)
    os.chown(key, 59006, 59006)
    kill_signer(daemon)
    assert paddock.until(lambda: tool("wallet", "ls").returncode == 0, "it is put right")


def test_key_as_a_credential(own_daemon, tmp_path):
    """The master key may come from systemd: then none is written."""
    (tmp_path / "paddock-signer-key").write_text("ab" * 32 + "\n")
    daemon = own_daemon(environment={"CREDENTIALS_DIRECTORY": str(tmp_path)}).start()
    wallet = ask(daemon, "WALLET_ADD", kind=pb.WALLET_KIND_GENERATED, label="x").wallet
    assert not (daemon.data_dir / "signer/master.key").exists()
    daemon.restart()
    assert [w.id for w in ask(daemon, "WALLET_LIST").wallets] == [wallet.id]


def test_memory(daemon, cli):
    for i in range(5):
        cli.ok("wallet", "new", f"m{i}")
    assert paddock.rss_kb(signer_pid(daemon)) <= 6 * 1024


# ---- the owner's channel ---------------------------------------------------

CONNECT = """
import os, socket, sys
uid, path, first = int(sys.argv[1]), sys.argv[2], sys.argv[3] == "1"
if uid:
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
if first:  # root of a user namespace of its own
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(4, 1, 0, 0, 0)  # dumpable: /proc/self is its own
    if libc.unshare(0x10000000): raise OSError(ctypes.get_errno(), "unshare")
    open("/proc/self/setgroups", "w").write("deny")
    open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
    assert os.getuid() == 0
end = socket.socket(socket.AF_UNIX)
end.settimeout(20)
try:
    end.connect(path)
except PermissionError:
    print("closed"); sys.exit()
try:
    end.sendall(bytes.fromhex("00000000" "2e01" "01" "00" "01000000" "00000000"))  # WALLET_LIST
except BrokenPipeError:
    pass  # the refusal is there before the question
print(end.recv(4096).hex())
"""


def connect_as(daemon, uid, namespace=False):
    done = subprocess.run([sys.executable, "-c", CONNECT, str(uid), str(daemon.run_dir / "owner.sock"), str(int(namespace))], capture_output=True,
                          text=True, timeout=60 * paddock.SLOW, check=False)
    assert done.returncode == 0, done
    return done.stdout.strip()


def test_only_root_of_the_machine_is_the_owner(daemon, cli):
    cli.ok("wallet", "ls")
    path = daemon.run_dir / "owner.sock"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and path.stat().st_uid == 0
    answer = bytes.fromhex(connect_as(daemon, 0))
    assert answer[6] == 2  # a reply
    others = [59000, 59001, 59002, 59003, 59004, 59005, 1000, 65534, 1879048192]  # our programs, users, the root of a sandbox
    for uid in others:
        assert connect_as(daemon, uid) == "closed"
    os.chmod(path, 0o666)  # whatever has become of the mode: who connects decides
    try:
        for uid in others:
            answer = bytes.fromhex(connect_as(daemon, uid))
            assert answer[6] == 3 and b"forbidden" in answer and b"only root may manage wallets" in answer
        assert b"forbidden" in bytes.fromhex(connect_as(daemon, 4321, namespace=True))
        assert "only root may manage wallets" in subprocess.run(
            ["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", paddock.BIN / "paddock", "wallet", "ls"], env=cli.environment, capture_output=True,
            text=True, timeout=60).stderr
    finally:
        os.chmod(path, 0o600)
    assert f"user 59000 was refused" in daemon.log(400)


def test_a_sandbox_has_no_way_to_it(daemon, api):
    box = api.create()
    assert box.exec("find / -xdev -name 'owner.sock' 2>/dev/null | grep .", user="root").exit_code != 0
    assert box.exec(["grep", "-c", "owner.sock", "/proc/net/unix"], user="root").text.strip() == "0"
    assert not [line for line in paddock.read(f"/proc/{box.pid1()}/mountinfo").splitlines() if str(daemon.run_dir) in line.split()[4]]
    api.delete(box.path)


def test_a_peer_that_says_nothing_keeps_nobody_out(daemon):
    silent = [owner(daemon) for _ in range(3)]
    assert ask(daemon, "STATUS").audit_seq > 0
    for peer in silent:
        peer.close()


def test_connections_and_restarts_leave_nothing_behind(daemon):
    def held():
        return {name: len(os.listdir(f"/proc/{pid}/fd")) for pid, name in daemon.programs().items() if name in ("paddockd", "paddock-api", "paddock-signer")}

    kill_signer(daemon)
    ask(daemon, "STATUS")
    client = daemon.client()
    paddock.until(lambda: client.get("/v1/wallets").status == 200, "the api has its channel")
    before = held()
    for _ in range(40):
        ask(daemon, "STATUS")
    for _ in range(3):
        kill_signer(daemon)
    ask(daemon, "STATUS")
    paddock.until(lambda: client.get("/v1/wallets").status == 200, "the api has its channel again")
    paddock.until(lambda: held() == before, f"as many as before: {before}")
    client.close()


def test_api_program_has_no_owners_channel(daemon):
    """Whatever the api sends to the keeper, it gets the role api: the call of the wire has no field for a role."""
    text = (paddock.ROOT / "api/wire.proto").read_text()
    assert re.search(r"message SignerOpen \{\s+bool start = 1;[^\n]*\n\}", text)


def unix_peers():
    """{inode of a unix socket: that of its other end}, from the kernel (sock_diag(7))."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 4) as link:
        ask = struct.pack("=BBHIIIII", socket.AF_UNIX, 0, 0, 0xFFFFFFFF, 0, 4, 0xFFFFFFFF, 0xFFFFFFFF)  # UDIAG_SHOW_PEER
        link.sendall(struct.pack("=IHHII", 16 + len(ask), 20, 0x301, 1, 0) + ask)
        peers, done = {}, False
        while not done:
            data = link.recv(1 << 20)
            while data:
                size, kind = struct.unpack_from("=IH", data)
                if kind == 2:
                    pytest.skip("this kernel has no unix_diag")
                assert kind in (3, 20), (kind, data[:64])
                done |= kind == 3
                at = 32
                while kind == 20 and at < size:
                    length, name = struct.unpack_from("=HH", data, at)
                    if name == 2:  # UNIX_DIAG_PEER
                        peers[struct.unpack_from("=I", data, 20)[0]] = struct.unpack_from("=I", data, at + 4)[0]
                    at += (length + 3) & ~3
                data = data[(size + 3) & ~3:]
    return peers


def sockets(pid):
    """{inode: fd}"""
    links = {fd: os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")}
    return {int(link[8:-1]): int(fd) for fd, link in links.items() if link.startswith("socket:[")}


def test_the_apis_own_channel_is_not_the_owners(daemon, cli, api):
    """A program that has taken over the api speaks on the channel that the keeper gave to it."""
    cli.ok("wallet", "test", "4", "--name", "coveted")
    wallet = next(w for w in ask(daemon, "WALLET_LIST").wallets if w.label == "coveted")
    rules = pb.Rules(scope="agent:own", wallets=[pb.AgentWallet(chain=31337, wallet=wallet.id)], limits=[pb.Limit(chain=31337, asset=rig.NATIVE, per_tx=rig.amount(1))])
    owners = {"WALLET_EXPORT": {"id": wallet.id, "password": b"12345678"}, "WALLET_REMOVE": {"id": wallet.id}, "SETTLE": {"id": "x"}, "ABANDON": {"id": "x"},
              "NONCE": {"wallet": wallet.id, "chain": 31337}}
    table = re.findall(r"CALL\((\w+), \w+, \w+, OWNER\)", (paddock.ROOT / "src/signer/calls.c").read_text())
    assert set(table) == set(owners), "each call that is the owner's alone is tried here"
    paddock.until(lambda: api.get("/v1/wallets").status == 200, "the api has its channel")
    pid = next(p for p, name in daemon.programs().items() if name == "paddock-api")
    theirs, peers = sockets(signer_pid(daemon)), unix_peers()
    fds = [fd for inode, fd in sockets(pid).items() if peers.get(inode) in theirs]
    assert len(fds) == 1, fds
    handle = os.pidfd_open(pid)
    signal.pidfd_send_signal(handle, signal.SIGSTOP)  # or it would read our answers
    try:
        paddock.until(lambda: paddock.proc_status(pid)["State"].startswith("T"), "the api stands still")
        fd = ctypes.CDLL(None, use_errno=True).syscall(438, handle, fds[0], 0)  # pidfd_getfd
        assert fd >= 0, os.strerror(ctypes.get_errno())
        peer = rig.Peer(socket.socket(fileno=fd))
        peer.stream = 1 << 30  # not one of its own
        peer.end.setblocking(True)
        assert wallet.id in [w.id for w in peer.ask("WALLET_LIST").wallets]
        for name, fields in owners.items():
            assert peer.fails(name, **fields).code == "not_supported", name
        for kind in (pb.WALLET_KIND_GENERATED, pb.WALLET_KIND_TEST, pb.WALLET_KIND_IMPORTED):
            assert peer.fails("WALLET_ADD", kind=kind, label="x").code == "forbidden"
        assert peer.fails("RULES_PUT", rules=rules).code == "forbidden"
        assert peer.fails("RULES_PUT", rules=pb.Rules(scope=f"wallet:{wallet.id}", fee_per_tx=rig.amount(rig.ETHER), fee_day=rig.amount(rig.ETHER))).code == "forbidden"
        peer.ask("PAUSE", paused=True)
        assert peer.fails("PAUSE", paused=False).code == "forbidden"
        peer.end.setblocking(False)  # as the api, which has the same file, wants it
        peer.close()
    finally:
        signal.pidfd_send_signal(handle, signal.SIGCONT)
        os.close(handle)
    assert ask(daemon, "STATUS").paused
    ask(daemon, "PAUSE", paused=False)
    assert wallet.id in [w["id"] for w in api.get("/v1/wallets").json()["wallets"]]  # the channel is as it was
    assert len(ask(daemon, "RULES_GET", scope="agent:own").rules.limits) == 0


# ---- commands --------------------------------------------------------------


def test_generated_wallet_and_its_backup(daemon, cli, tmp_path):
    text = cli.ok("wallet", "new", "main")
    address = re.search(r"wallet main \(\w+\): (0x[0-9a-fA-F]{40})", text)[1]
    assert "never again" in text and "Write it down on paper" in text
    listed = next(w for w in cli.json("wallet", "ls") if w["label"] == "main")
    assert (listed["kind"], listed["address"]) == ("generated", address)
    assert "main" in cli.ok("wallet", "ls")
    made = cli.json("wallet", "new", "second")
    assert set(made) >= {"id", "address", "key"}
    assert in_ethers(f"new ethers.Wallet({json.dumps(made['key'])}).address") == made["address"]
    assert len(made["mnemonic"].split()) == 24 and len(cli.json("wallet", "new", "short", "--words", "12")["mnemonic"].split()) == 12
    assert in_ethers(f"ethers.Wallet.fromPhrase({json.dumps(made['mnemonic'])}).address") == made["address"]
    assert made["mnemonic"] not in cli.ok("wallet", "ls", "--json")
    assert "12 or 24" in cli.refused("wallet", "new", "x", "--words", "13")
    # The backup brings the same key back, by its words or as it is.
    (tmp_path / "words").write_text("\n".join(made["mnemonic"].split(" ")) + "\n")
    assert cli.json("wallet", "import", tmp_path / "words")["address"] == made["address"]
    assert cli.json("wallet", "import", "-", "--name", "raw", stdin=made["key"].encode() + b"\n")["address"] == made["address"]
    second = in_ethers(f"ethers.HDNodeWallet.fromPhrase({json.dumps(made['mnemonic'])}, '', \"m/44'/60'/0'/0/3\").address")
    assert cli.json("wallet", "import", tmp_path / "words", "--account", "3")["address"] == second
    (tmp_path / "passphrase").write_text("a secret\n")
    hidden = in_ethers(f"ethers.HDNodeWallet.fromPhrase({json.dumps(made['mnemonic'])}, 'a secret').address")
    assert cli.json("wallet", "import", tmp_path / "words", "--passphrase-file", tmp_path / "passphrase")["address"] == hidden
    assert made["key"][2:] not in cli.ok("wallet", "ls", "--json")


def in_ethers(expression, stdin=""):
    home = npm.install(ETHERS, "eth")
    script = f"""const {{ ethers }} = require({json.dumps(str(home / 'node_modules/ethers'))});
        const input = require("fs").readFileSync(0, "utf8");
        (async () => console.log(await ({expression})))();"""
    done = subprocess.run(["node", "-e", script], input=stdin, capture_output=True, text=True, timeout=120 * paddock.SLOW)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_and_export(daemon, cli, password, tmp_path):
    made = json.loads(in_ethers("(w => JSON.stringify({address: w.address, file: ethers.encryptKeystoreJsonSync(w, input, {scrypt: {N: 1024}})}))(ethers.Wallet.createRandom())", PASSWORD))
    (tmp_path / "keystore.json").write_text(made["file"])
    wallet = cli.json("wallet", "import", tmp_path / "keystore.json", "--name", "brought", "--password-file", password)
    assert (wallet["address"], wallet["kind"], wallet["label"]) == (made["address"], "imported", "brought")
    assert "key" not in wallet and "mnemonic" not in wallet
    wrong = tmp_path / "wrong"
    wrong.write_text("not it")
    assert "password" in cli.refused("wallet", "import", tmp_path / "keystore.json", "--password-file", wrong)
    short = tmp_path / "short"
    short.write_text("1234567")
    assert "at least 8" in cli.refused("wallet", "export", "brought", "--password-file", short)
    assert "there is no terminal" in cli.refused("wallet", "export", "brought", start_new_session=True)
    wrong.write_text("nonsense")
    assert "a keystore" in cli.refused("wallet", "import", wrong)
    assert "No such file" in cli.refused("wallet", "import", tmp_path / "nothing")
    if not may_lock_much():
        return  # the key of an exported file is derived in 128 MiB of locked memory
    # And back into ethers, by a file that root alone reads.
    cli.ok("wallet", "export", "brought", "--password-file", password, "--output", tmp_path / "out.json")
    assert stat.S_IMODE((tmp_path / "out.json").stat().st_mode) == 0o600
    text = (tmp_path / "out.json").read_text()
    assert in_ethers(f"ethers.Wallet.fromEncryptedJsonSync(input, {json.dumps(PASSWORD)}).address", text) == made["address"]
    assert "exists" in cli.refused("wallet", "export", "brought", "--password-file", password, "--output", tmp_path / "out.json").lower()


def test_test_accounts_and_external_wallets(cli, password):
    wallet = cli.json("wallet", "test", "0", "--name", "dev")
    assert (wallet["address"], wallet["kind"]) == (FIRST, "test")
    assert cli.json("wallet", "test", "1")["label"] == "test-1"
    assert "0 to 9" in cli.refused("wallet", "test", "10")
    outside = cli.json("wallet", "external", CONTRACT, "phone")
    assert (outside["kind"], outside["address"]) == ("external", CONTRACT)
    assert "checksum" in cli.refused("wallet", "external", CONTRACT.replace("B", "b", 1), "x")
    assert "no address" in cli.refused("wallet", "external", "0x12", "x")
    assert "known to everybody" in cli.refused("wallet", "export", "dev", "--password-file", password)
    cli.ok("wallet", "rm", "phone", "--yes")


def test_remove_asks_first(cli):
    made = cli.json("wallet", "new", "gone")
    refused = cli.refused("wallet", "rm", "gone")
    assert "consent is needed" in refused and "The key is destroyed" in refused
    assert cli.json("wallet", "rm", made["id"], "--yes") == {"removed": made["id"]}
    assert "there is no wallet gone" in cli.refused("wallet", "rm", "gone", "--yes")
    cli.ok("wallet", "new", "twin")
    cli.ok("wallet", "new", "twin")
    assert "several wallets are called twin" in cli.refused("wallet", "rm", "twin", "--yes")


def test_questions_on_a_terminal(cli, agent, tmp_path):
    cli.ok("wallet", "new", "asked")
    for answer in ("n\n", "\n", "no, yes\n", "\x04"):
        status, shown, _ = cli.on_terminal("wallet", "rm", "asked", answers=[("Remove it? [y/N] ", answer)])
        assert status != 0 and "The key is destroyed" in shown and "nothing was changed" in shown
    wallet_named(cli, "asked")
    agent("quizzed")
    question = [("Allow this? [y/N] ", "y\n")]
    status, shown, _ = cli.on_terminal("agent", "allow", "quizzed", "--wallet", "asked", "--limit", "1", answers=question)
    assert status == 0 and "at most 1 in one transaction" in shown and len(cli.json("agent", "limits", "quizzed")["limits"]) == 2
    assert cli.on_terminal("agent", "allow", "quizzed", "--limit", "2", answers=[("! on eip155:31337", ""), ("[y/N] ", "n\n")])[0] != 0
    assert cli.on_terminal("wallet", "rm", "asked", answers=[("Remove it? [y/N] ", "y\n")])[0] == 0
    assert "asked" not in [w["label"] for w in cli.json("wallet", "ls")]
    # Passwords are not shown, those of new files are asked for twice, and who gives up gets the terminal back.
    cli.ok("wallet", "new", "typed")
    out = tmp_path / "typed.json"
    first, second = "password of the new keystore: ", "the same again: "
    status, shown, echo = cli.on_terminal("wallet", "export", "typed", "--output", out, answers=[(first, PASSWORD + "\n"), (second, PASSWORD + "x\n")])
    assert status != 0 and "the passwords differ" in shown and PASSWORD not in shown and echo and not out.exists()
    status, shown, echo = cli.on_terminal("wallet", "export", "typed", "--output", out, answers=[(first, "some\x03")])
    assert status == -2 and "some" not in shown and echo and not out.exists()
    if not may_lock_much():
        return
    status, shown, echo = cli.on_terminal("wallet", "export", "typed", "--output", out, answers=[(first, PASSWORD + "\n"), (second, PASSWORD + "\n")])
    assert status == 0 and PASSWORD not in shown and echo, shown
    status, shown, _ = cli.on_terminal("wallet", "import", out, "--name", "back", answers=[("password of the keystore: ", PASSWORD + "\n")])
    assert status == 0 and PASSWORD not in shown, shown
    assert wallet_named(cli, "back")["address"] == wallet_named(cli, "typed")["address"]


def test_limits_of_a_wallet(cli):
    wallet = cli.json("wallet", "new", "shared")
    now = cli.json("wallet", "limits", "shared")
    assert now["wallet"] == wallet["id"] and now["limits"] == []
    assert (now["fee_per_transaction"], now["fee_day"]) == (str(10**16), str(10**17))
    now = cli.json("wallet", "limits", "shared", "--limit", "1=0.5/2eth//3", "--limit", f"{CHAIN}=7wei/50gwei", "--token", f"1@{TOKEN}:6:USDC=1.5/100", "--fee", "0.002/0.02")
    first, second, token = now["limits"]
    assert (first["chain"], first["asset"], first["per_transaction"], first["day"], first["week"], first["month"]) == (
        "eip155:1", "native", str(5 * 10**17), str(2 * 10**18), None, str(3 * 10**18))
    assert (second["per_transaction"], second["day"]) == ("7", str(50 * 10**9))
    assert (token["asset"], token["per_transaction"], token["day"], token["decimals"]) == (TOKEN, "1500000", "100000000", 6)
    assert token["symbol"] == "USDC"
    assert (now["fee_per_transaction"], now["fee_day"]) == (str(2 * 10**15), str(2 * 10**16))
    assert cli.json("wallet", "limits", "shared") == now
    text = cli.ok("wallet", "limits", "shared", "--limit", "1=0.25")
    assert "on eip155:1 the native asset: at most 0.25 in one transaction\n" in text
    assert f"on eip155:1 USDC (the token {TOKEN}): at most 1.5 in one transaction, 100 in 24 hours\n" in text
    assert cli.json("wallet", "limits", "shared", "--clear")["limits"] == []
    for wrong, says in (("1=1e18", "no amount"), ("1=-1", "no amount"), ("1=0.1234567890123456789", "no amount"), ("1=0", "rules"), ("x=1", "no chain"), ("1=1/2/3/4/5/6", "at most five"),
                        ("1=1.5wei", "no amount"), ("1", "--limit wants"), ("1=" + "9" * 80, "too large")):
        assert says in cli.refused("wallet", "limits", "shared", "--limit", wrong), wrong


def test_allow_takes_what_the_manifest_asks_for(daemon, cli, agent):
    cli.ok("wallet", "new", "purse")
    wallet = next(w for w in cli.json("wallet", "ls") if w["label"] == "purse")
    it = agent("dca", permissions={"contracts": [CONTRACT]}, spending_limits={"per_transaction": "0.1", "daily": "1.0", "weekly": "5"})
    assert cli.json("agent", "limits", "dca")["limits"] == []
    assert "It may spend nothing." in cli.ok("agent", "limits", "dca")
    refused = cli("agent", "allow", "dca", "--wallet", "purse")
    assert refused.returncode != 0 and "consent is needed" in refused.err
    assert "at most 0.1 in one transaction, 1 in 24 hours, 5 in 7 days" in refused.err and CONTRACT in refused.err and wallet["address"] in refused.err
    assert cli.json("agent", "limits", "dca")["limits"] == []  # nothing without consent
    now = cli.json("agent", "allow", "dca", "--wallet", "purse", "--yes")
    assert now["agent"] == it and now["only_listed"] and [a["address"] for a in now["addresses"]] == [CONTRACT]
    assert [(w["chain"], w["wallet"]) for w in now["wallets"]] == [(CHAIN, wallet["id"]), ("eip155:10", wallet["id"])]
    assert [(x["chain"], x["per_transaction"], x["day"], x["week"], x["month"]) for x in now["limits"]] == [
        (chain, str(10**17), str(10**18), str(5 * 10**18), None) for chain in (CHAIN, "eip155:10")]
    assert now["approvers"] == 1 and now["auto_below"] is None and not now["allow_messages"]
    assert cli.json("agent", "limits", "dca") == now
    assert "A person must approve each request." in cli.ok("agent", "limits", "dca")


def test_allow_by_options(cli, agent):
    cli.ok("wallet", "new", "other")
    agent("opts")
    assert "names no spending_limits" in cli.refused("agent", "allow", "opts", "--wallet", "other", "--yes")
    now = cli.json("agent", "allow", "opts", "--wallet", "other", "--chain", "31337", "--limit", "20gwei/1", "--token", f"{TOKEN}=5/50", "--to", FIRST, "--call", CONTRACT,
                   "--auto-below", "1gwei", "--approvers", "2", "--allow-messages", "--allow-dangerous", "--expiry", "10m", "--only-listed", "--max-pending", "3", "--yes")
    assert [w["chain"] for w in now["wallets"]] == [CHAIN]
    assert [(x["asset"], x["per_transaction"], x["day"]) for x in now["limits"]] == [("native", str(20 * 10**9), str(10**18)), (TOKEN, "5", "50")]
    assert [(a["address"], a["call"]) for a in now["addresses"]] == [(FIRST, False), (CONTRACT, True)]
    assert (now["auto_below"], now["approvers"], now["expiry_seconds"], now["max_pending"]) == (str(10**9), 2, 600, 3)
    assert now["only_listed"] and now["allow_messages"] and now["allow_dangerous"] and not now["allow_creation"]
    for words, says in ((["--chain", "1"], "does not ask for chain eip155:1"), (["--limit", "1=0.5"], "which it may not use"),
                        (["--auto-below", "1", "--reset", "addresses"], "--auto-below needs"), (["--approvers", "17", "--limit", "1"], "at most 16"),
                        (["--limit", "1", "--token", TOKEN], "--token wants"), (["--typed", TOKEN], "--typed wants"), (["--typed", f"1@{TOKEN}:Order"], "which it may not use"),
                        (["--window", "mon@9-17"], "HH:MM"), (["--window", "someday@09:00-10:00"], "--window wants"),
                        (["--window", "daily@22:00-06:00"], "write two"), (["--remove", TOKEN[:-1] + "3"], "checksum"), (["--remove", "77"], "do not name it"),
                        (["--reset", "everything"], "--reset wants"), (["--unlimited-approvals", CONTRACT], "set a limit with --token")):
        assert says in cli.refused("agent", "allow", "opts", "--wallet", "other", "--yes", *words), words
    assert cli.json("agent", "limits", "opts") == now  # what was refused has changed nothing
    assert "Nothing changes." in cli("agent", "allow", "opts").err
    agent("bare")
    assert "which wallet" in cli.refused("agent", "allow", "bare", "--limit", "1")
    assert "there is no wallet nowhere" in cli.refused("agent", "allow", "opts", "--wallet", "nowhere", "--yes")
    assert cli.json("agent", "allow", "opts", "--pause")["paused"]
    assert "It is paused" in cli.ok("agent", "limits", "opts")
    # Allowing anew does not end a pause by the way.
    assert cli.json("agent", "allow", "opts", "--wallet", "other", "--limit", "1", "--yes")["paused"]
    assert not cli.json("agent", "allow", "opts", "--resume")["paused"]


@pytest.fixture
def allowed(cli, agent):
    """An agent with rules of every kind; returns its name and them."""
    if "till" not in [w["label"] for w in cli.json("wallet", "ls")]:
        cli.ok("wallet", "new", "till")

    def make(name, *more):
        agent(name)
        return cli.json("agent", "allow", name, "--wallet", "till", "--limit", "1/2/3/4/5", "--token", f"{CHAIN}@{TOKEN}:6:USDC=5/50", "--to", f"{FIRST}=the bank",
                        "--deny", f"10@{CONTRACT}=a thief", "--auto-below", "0.5", "--approvers", "2", "--max-pending", "3", "--expiry", "10m", "--cool-down", "1h",
                        "--suspend-after", "9", "--typed", f"31337@{CONTRACT}:Order", "--window", "mon-fri@09:00-17:00", "--window", "sun@10:00-24:00", "--only-listed",
                        "--require-simulation", "--allow-messages", *more, "--yes")

    return make


def test_allow_says_everything_and_keeps_what_it_does_not_name(cli, allowed):
    was = allowed("keeper")
    assert was["typed"] == [{"chain": CHAIN, "contract": CONTRACT, "primary_type": "Order"}]
    assert was["windows"] == [{"days": ["mon", "tue", "wed", "thu", "fri"], "start": "09:00", "end": "17:00"}, {"days": ["sun"], "start": "10:00", "end": "24:00"}]
    assert was["addresses"] == [{"chain": None, "address": FIRST, "deny": False, "call": False, "note": "the bank"},
                                {"chain": "eip155:10", "address": CONTRACT, "deny": True, "call": False, "note": "a thief"}]
    assert (was["approvers"], was["max_pending"], was["expiry_seconds"], was["cool_down_seconds"], was["suspend_after"]) == (2, 3, 600, 3600, 9)
    text = cli.ok("agent", "limits", "keeper")
    for words in ("mon, tue, wed, thu, fri from 09:00 to 17:00 UTC", f"Order of {CONTRACT} on {CHAIN}", "held back for 1 h", "At most 3 requests wait at once, each for 10 min",
                  "paused after 9 refusals", f"{FIRST}: the bank", "(forbidden) on eip155:10: a thief"):
        assert words in text, text
    # One option changes one thing. A token keeps its decimals and its name.
    for options, change in ((["--approvers", "3"], {"approvers": 3}), (["--allow-creation"], {"allow_creation": True}), (["--reset", "windows"], {"windows": []}),
                            (["--reset", "typed", "--reset", "messages"], {"typed": [], "allow_messages": False}), (["--reset", "auto-below"], {"auto_below": None}),
                            (["--window", "daily@00:00-12:30"], {"windows": [{"days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"], "start": "00:00", "end": "12:30"}]}),
                            (["--remove", FIRST], {"addresses": [was["addresses"][1]]}),
                            (["--call", FIRST], {"addresses": [{**was["addresses"][0], "call": True}, was["addresses"][1]]}),
                            (["--token", f"{CHAIN}@{TOKEN}=7"], {"limits": [*was["limits"][:2], {**was["limits"][2], "per_transaction": "7000000", "day": None}]}),
                            (["--unlimited-approvals", TOKEN], {"limits": [*was["limits"][:2], {**was["limits"][2], "unlimited_approvals": True}]}),
                            (["--remove", "10"], {"wallets": was["wallets"][:1], "limits": [was["limits"][0], was["limits"][2]], "addresses": was["addresses"][:1]})):
        assert cli.json("agent", "allow", "keeper", *options, "--yes") == {**was, **change}, options
        back = cli("agent", "allow", "keeper", "--rules", "-", "--yes", stdin=json.dumps(was).encode())
        assert back.returncode == 0, back
        assert cli.json("agent", "limits", "keeper") == was
    anew = cli.json("agent", "allow", "keeper", "--reset", "all", "--wallet", "till", "--limit", "1", "--yes")
    assert (anew["typed"], anew["windows"], anew["addresses"], anew["approvers"], len(anew["wallets"])) == ([], [], [], 1, 2)


def test_rules_from_a_file(cli, api, allowed, tmp_path):
    """`agent limits --json`, GET /v1/agents/ID/limits and --rules are the same."""
    was = allowed("filed")
    assert api.get("/v1/agents/filed/limits").json() == was
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"wallets": [{"chain": CHAIN, "wallet": "till"}], "limits": [{"chain": CHAIN, "asset": "native", "per_transaction": "7"}]}))
    now = cli.json("agent", "allow", "filed", "--rules", path, "--yes")
    assert [x["per_transaction"] for x in now["limits"]] == ["7"] and now["wallets"] == was["wallets"][:1]
    assert {k: v for k, v in now.items() if k not in ("limits", "wallets")} == {k: v for k, v in was.items() if k not in ("limits", "wallets")}
    for text, says in (("{", "rules.json"), ('{"limit": []}', "limit"), ('{"wallets": [{"chain": "eip155:1", "wallet": "nowhere"}]}', "there is no wallet nowhere"),
                       ('{"limits": [{"chain": "eip155:1", "asset": "native"}]}', "per_transaction"), ('{"approvers": 99}', "approvers"),
                       ('{"typed": [{"chain": "eip155:1", "contract": "0x1", "primary_type": "X"}]}', "an address is")):
        path.write_text(text)
        assert says in cli.refused("agent", "allow", "filed", "--rules", path, "--yes"), text
    assert "need --yes" in cli.refused("agent", "allow", "filed", "--rules", "-")
    assert cli.json("agent", "limits", "filed") == now


def test_what_allows_more_is_marked(cli, api, allowed, tmp_path):
    """The mark is what the signer refuses to the api."""
    base = allowed("marked")
    native, other, token = base["limits"]
    bank, thief = base["addresses"]
    week, sunday = base["windows"]
    path = tmp_path / "rules.json"
    marks = set()
    for change in ({"limits": [{**native, "per_transaction": "1"}, other, token]}, {"limits": [{**native, "day": None}, other, token]}, {"limits": [native, other]},
                   {"limits": [{**native, "lifetime": str(6 * 10**18)}, other, token]}, {"limits": [native, other, {**token, "unlimited_approvals": True}]},
                   {"limits": [native, other, {**token, "symbol": "DAI"}]}, {"limits": [native, other, {**token, "decimals": 7}]},
                   {"addresses": [thief]}, {"addresses": [bank]}, {"addresses": [bank, thief, {**bank, "address": TOKEN, "note": None}]},
                   {"addresses": [bank, thief, {**thief, "address": TOKEN, "note": None}]}, {"addresses": [{**bank, "call": True}, thief]},
                   {"addresses": [{**bank, "note": "another bank"}, thief]}, {"addresses": [{**bank, "deny": True}, thief]},
                   {"windows": [week]}, {"windows": []}, {"windows": [{**week, "days": ["mon"], "start": "10:00"}]}, {"windows": [{**week, "end": "18:00"}, sunday]},
                   {"only_listed": False}, {"require_simulation": False}, {"allow_messages": False}, {"allow_creation": True}, {"allow_dangerous": True}, {"paused": True},
                   {"approvers": 1}, {"approvers": 3}, {"auto_below": "0"}, {"auto_below": str(10**18)}, {"auto_below": "1"}, {"max_pending": 4}, {"max_pending": 2},
                   {"expiry_seconds": 601}, {"expiry_seconds": 60}, {"cool_down_seconds": 1}, {"cool_down_seconds": 4000}, {"suspend_after": 0}, {"suspend_after": 10},
                   {"suspend_after": 1}):
        path.write_text(json.dumps({**base, **change}))
        shown = cli("agent", "allow", "marked", "--rules", path)
        assert shown.returncode != 0 and "consent is needed" in shown.err, (change, shown)
        marked = any(line.startswith("! ") for line in shown.err.splitlines())
        assert ("allows more than before" in shown.err) == marked and ("all of it stricter" in shown.err) != marked
        response = api.send_json("PUT", "/v1/agents/marked/limits", change)
        assert response.status == (403 if marked else 200), (change, shown.err, response)
        marks.add(marked)
        if response.status == 200:
            path.write_text(json.dumps(base))
            cli.ok("agent", "allow", "marked", "--rules", path, "--yes")
    assert marks == {True, False}
    for change in ({"typed": [*base["typed"], {**base["typed"][0], "primary_type": "Other"}]}, {"wallets": [*base["wallets"], {"chain": "eip155:5", "wallet": "till"}]}):
        path.write_text(json.dumps(change))
        assert "\n! " in cli("agent", "allow", "marked", "--rules", path).err
    for change in ({"typed": []}, {"wallets": base["wallets"][:1]}):
        path.write_text(json.dumps(change))
        assert "all of it stricter" in cli("agent", "allow", "marked", "--rules", path).err
    assert cli.json("agent", "limits", "marked") == base


def test_kill_switch(daemon, cli):
    assert cli.json("wallet", "pause", "--cancel-pending") == {"paused": True, "cancelled": 0}
    assert ask(daemon, "STATUS").paused
    kill_signer(daemon)
    assert ask(daemon, "STATUS").paused
    assert cli.ok("wallet", "resume") == ""
    assert not ask(daemon, "STATUS").paused


def asked(daemon, agent, value=5):
    """A request that waits. The owner's channel may ask as the api does."""
    return ask(daemon, "REQUEST", **rig.request(agent, value=value))


def test_settle(daemon, cli, agent):
    assert "there is no request" in cli.refused("wallet", "settle", "nosuchrequest", "--note", "x")
    it = agent("settler")
    if "dev2" not in [w["label"] for w in cli.json("wallet", "ls")]:
        cli.ok("wallet", "test", "2", "--name", "dev2")
    cli.ok("agent", "allow", "settler", "--wallet", "dev2", "--chain", "31337", "--limit", "1", "--yes")
    item = asked(daemon, it)
    assert "the request is pending" in cli.refused("wallet", "settle", item.id, "--yes")
    refused = cli.refused("wallet", "settle", item.id)
    assert item.summary in refused and "Look at the chain" in refused and "consent is needed" in refused


def test_a_removed_agent_may_spend_nothing(daemon, cli, api):
    cli.ok("wallet", "test", "3", "--name", "leaving")
    wallet = wallet_named(cli, "leaving")
    it = api.post("/v1/agents", {"manifest": {"name": "leaver", "version": "1.0.0", "runtime": "node", "entrypoint": "index.js", "permissions": {"chains": [CHAIN]}},
                                 "name": "leaver", "consent": True}).json()["id"]
    cli.ok("agent", "allow", "leaver", "--wallet", "leaving", "--limit", "1/2", "--to", FIRST, "--deny", CONTRACT, "--auto-below", "0.1", "--only-listed", "--require-simulation",
           "--window", "daily@00:00-24:00", "--approvers", "2", "--allow-messages", "--yes")
    assert wallet_named(cli, "leaving")["agents"] == [it]
    refused = cli.refused("wallet", "rm", "leaving")
    assert f"The agent {it} spends from it, and could no longer." in refused and "consent is needed" in refused
    waiting = [ask(daemon, "REQUEST", **rig.request(it, to=bytes.fromhex(FIRST[2:]), value=10**17 + n, facts=rig.facts(method=pb.SIM_METHOD_SIMULATE_V1))) for n in (1, 2, 3)]
    assert [i.state for i in waiting] == [rig.state("pending")] * 3, waiting
    assert "under way" in cli.refused("wallet", "rm", "leaving", "--yes")
    assert api.delete(f"/v1/agents/{it}").status == 204
    items = [ask(daemon, "GET", id=i.id) for i in waiting]
    assert [(i.state, i.decided_by) for i in items] == [(rig.state("cancelled"), "removal of the agent")] * 3, items
    rules = ask(daemon, "RULES_GET", scope=f"agent:{it}").rules
    assert len(rules.wallets) == len(rules.limits) == 0 and rules.paused and not rules.auto_below and not rules.allow_messages and rules.only_listed
    late = ask(daemon, "REQUEST", **rig.request(it, to=bytes.fromhex(FIRST[2:]), value=7))
    assert late.state == rig.state("denied")
    assert wallet_named(cli, "leaving")["agents"] == []
    assert "spends from it" not in cli("wallet", "rm", wallet["id"], "--yes").err


def wallet_named(cli, label):
    return next(w for w in cli.json("wallet", "ls") if w["label"] == label)


def test_no_daemon(cli, tmp_path):
    assert "no daemon" in cli.refused("wallet", "ls", "--run-dir", tmp_path / "nowhere")
    assert "no daemon listens" in cli.refused("wallet", "ls", "--run-dir", tmp_path)


# ---- secrets ---------------------------------------------------------------


def test_a_key_is_nowhere_else(daemon, cli, api, password, tmp_path):
    """A key that is made, exported and imported is in no other program's memory, in no file, and in no answer."""
    box = api.create()
    made = cli.json("wallet", "new", "secret")
    raw = bytes.fromhex(made["key"][2:])
    needles = {raw, raw.hex().encode(), raw[4:28]}
    if made["mnemonic"]:
        needles |= {made["mnemonic"].encode(), " ".join(made["mnemonic"].split()[3:9]).encode()}
    if may_lock_much():
        cli.ok("wallet", "export", "secret", "--password-file", password, "--output", tmp_path / "k.json")
    (tmp_path / "key").write_text(made["key"])
    cli.ok("wallet", "import", tmp_path / "key", "--name", "again")
    cli.ok("wallet", "import", "-", "--name", "words", stdin=made["mnemonic"].encode())
    planted = {b"planted-" + os.urandom(8).hex().encode()}
    assert api.post("/v1/agents", {"manifest": {"name": planted.copy().pop().decode()}, "consent": False}).status in (200, 400)
    others = {pid: name for pid, name in daemon.programs().items() if name != "paddock-signer"}
    assert {"paddockd", "paddock-api", "paddock-gate", "paddock-vault"} <= set(others.values())
    assert {name: memory_has(pid, needles) for pid, name in others.items() if memory_has(pid, needles)} == {}
    assert not any(memory_has(pid, needles) for pid in box.processes())
    assert tree_has(daemon.base, needles) == {}
    # The signer forgets it as well, when it has signed or exported; the scanner would see it.
    assert memory_has(signer_pid(daemon), needles) == set()
    needle = cli.json("wallet", "ls")[-1]["label"].encode()
    assert tree_has(daemon.base, {needle})
    api.delete(box.path)
