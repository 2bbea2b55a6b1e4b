"""The keys of the AI gateway: from the vault to paddock-ai, for one request to one host, past the api.

The programs are run alone here, with the test as the others of the channel.
"""

import os
import secrets as random
import socket

import pytest

from frames import EVENT, FAIL, LAST, REPLY, ROLES, TYPES, Channel, Failed, Program, decode
from provider import Provider

HOST = "api.example.com"
ASKED_BY_NOBODY = {"VAULT_OPEN", "VAULT_PEER"}  # the keeper's


# ---- paddock-vault ---------------------------------------------------------


class Vault:
    def __init__(self, place):
        place.mkdir(mode=0o700)
        os.chown(place, 59003, 59003)
        self.keeper, theirs = Channel.pair()
        folder = os.open(place, os.O_RDONLY)
        self.program = Program("paddock-vault", [theirs, folder], PADDOCK_VAULT_UID=59003, PADDOCK_VAULT_KEYS=0)
        os.close(folder)
        self.api, self.gate, self.ai = (self.peer(role) for role in ("API", "GATE", "AI"))
        self.api.call("VAULT_SYNC", {1: {1: "box1", 2: "tenant"}})
        self.api.call("SECRET_PUT", {1: "tenant", 3: "KEY", 4: "of-the-tenant"})

    def peer(self, role):
        ours, theirs = Channel.pair()
        self.keeper.bring("VAULT_PEER", {1: ROLES[role]}, theirs)
        return ours

    def lend(self, **more):
        wish = {"tenant": "tenant", "box": "box1", "secret": "KEY", "host": HOST, **more}
        return self.api.call("VAULT_LEND", dict(enumerate(wish.values(), 1)))[1]

    def redeem(self, ticket, host=HOST, who=None):
        try:
            return (who or self.ai).call("VAULT_REDEEM", {1: ticket, 2: host})[1].decode()
        except Failed as failed:
            return f"! {failed}"

    def stop(self):
        self.program.stop()
        for channel in (self.keeper, self.api, self.gate, self.ai):
            channel.close()


@pytest.fixture
def vault(tmp_path):
    it = Vault(tmp_path / "vault")
    yield it
    it.stop()


def test_lent_for_one_request_to_one_host(vault):
    ticket = vault.lend()
    assert vault.redeem(ticket) == "of-the-tenant"
    assert vault.redeem(ticket) == "! forbidden", "once"
    for host in ("evil.example.com", "api.example.com.evil.com", "example.com", "*", ""):
        ticket = vault.lend()
        assert vault.redeem(ticket, host) == "! forbidden", host
        assert vault.redeem(ticket) == "! forbidden", "it is used up"
    assert vault.redeem(vault.lend(), HOST.upper()) == "of-the-tenant"
    for bad in (b"", b"x", random.token_bytes(16), vault.lend()[:-1], vault.lend() + b"x"):
        assert vault.redeem(bad) == "! forbidden"


def test_whose_it_is(vault):
    vault.api.call("SECRET_PUT", {1: "tenant", 2: "box1", 3: "KEY", 4: "of-the-box"})
    assert vault.redeem(vault.lend()) == "of-the-box"
    assert vault.redeem(vault.lend(box="box2")) == "of-the-tenant"
    for wish, code in (({"secret": "NONE"}, "not_found"), ({"tenant": "other"}, "not_found"), ({"tenant": ""}, "invalid_argument"),
                       ({"host": ""}, "invalid_argument"), ({"host": "x" * 300}, "invalid_argument")):
        with pytest.raises(Failed, match=code):
            vault.lend(**wish)
    # it is the value of the moment in which it is fetched; what is gone by then is not given
    ticket, other = vault.lend(), vault.lend()
    vault.api.call("SECRET_PUT", {1: "tenant", 2: "box1", 3: "KEY", 4: "newer"})
    assert vault.redeem(ticket) == "newer"
    vault.api.call("VAULT_BOX_REMOVE", {1: "box1"})
    assert vault.redeem(other) == "! forbidden"


def test_an_api_that_starts_again_takes_its_tickets_along(vault):
    ticket = vault.lend()
    again = vault.peer("API")
    again.call("VAULT_SYNC", {})
    assert vault.redeem(ticket) == "! forbidden"
    again.close()


def test_nobody_asks_for_what_is_not_theirs(vault):
    calls = {name for name in TYPES if name.startswith(("SECRET_", "VAULT_"))} - ASKED_BY_NOBODY
    may = {"ai": {"VAULT_REDEEM"}, "gate": {"VAULT_LEAF", "VAULT_REVEAL"}}
    assert may["ai"] < calls and may["gate"] < calls and len(calls) > 10
    for who, own in may.items():
        for name in calls - own:
            assert getattr(vault, who).code(name, {}) == "not_supported", (who, name)
        for name in own:
            assert getattr(vault, who).code(name, {}) in ("forbidden", "invalid_argument"), (who, name)
    for name in set().union(*may.values()):
        assert vault.api.code(name, {}) == "not_supported"
    # a grant of the gate's is none of paddock-ai's, and the other way round
    vault.api.call("VAULT_BOX", {1: {1: "box1", 2: "tenant", 3: {1: "KEY", 2: HOST}}})
    assert vault.gate.call("VAULT_REVEAL", {1: "box1", 2: HOST, 3: "KEY"})[1] == b"of-the-tenant"
    assert vault.ai.code("VAULT_REVEAL", {1: "box1", 2: HOST, 3: "KEY"}) == "not_supported"
    ticket = vault.lend(host="other.example.com")
    assert vault.gate.code("VAULT_REVEAL", {1: "box1", 2: "other.example.com", 3: "KEY"}) == "forbidden"
    assert vault.redeem(ticket, "other.example.com", vault.gate) == "! not_supported"
    # somebody without a role is not listened to
    nobody, theirs = Channel.pair()
    vault.keeper.bring("VAULT_PEER", {1: 4}, theirs)
    with pytest.raises(EOFError):
        nobody.receive()
    nobody.close()


# ---- paddock-ai -------------------------------------------------------------


@pytest.fixture(scope="module")
def provider(workdir):
    place = workdir / "provider-key"
    place.mkdir()
    it = Provider(place)
    yield it
    it.stop()


class Carrier:
    """paddock-ai; the test is its api, its keeper and its vault."""

    def __init__(self, provider):
        self.port = provider.server.server_address[1]
        self.api, api = Channel.pair()
        self.keeper, keeper = Channel.pair()
        self.vault = None
        self.program = Program("paddock-ai", [api, keeper], PADDOCK_AI_UID=59004, PADDOCK_AI_CA_FILE=provider.authority)
        self.join()

    def join(self):
        self.leave()
        self.vault, theirs = Channel.pair()
        self.keeper.bring("AI_VAULT", {}, theirs)

    def leave(self):
        if self.vault:
            self.vault.close()

    def dial(self, host="127.0.0.1", **more):
        wish = {1: host, 2: self.port, 3: 1, 4: "GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n", 5: b"ticket" + b"0" * 10,
                6: "authorization", 7: "Bearer "}
        wish.update({int(key[1:]): value for key, value in more.items()})
        self.api.stream += 1
        self.api.send(1, "AI_DIAL", {number: value for number, value in wish.items() if value}, self.api.stream)

    def asked(self):
        """What it asks the vault for: (stream, ticket, host)."""
        _, number, stream, body, _ = self.vault.receive()
        assert number == TYPES["VAULT_REDEEM"]
        return stream, decode(body)[1], decode(body)[2].decode()

    def give(self, stream, key):
        self.vault.send(REPLY, "VAULT_REDEEM", {1: key}, stream, LAST)

    def stop(self):
        self.program.stop()
        for channel in (self.api, self.keeper, self.vault):
            channel.close()


@pytest.fixture
def carrier(provider):
    provider.take()
    it = Carrier(provider)
    yield it
    it.stop()


def answer_of(carrier):
    _, fd = carrier.api.answer()
    with socket.socket(fileno=fd) as stream:
        stream.settimeout(20)
        return stream.makefile("rb").read()


def test_the_key_is_put_into_the_header(carrier, provider):
    carrier.dial()
    stream, ticket, host = carrier.asked()
    assert ticket == b"ticket0000000000" and host == "127.0.0.1"
    assert provider.take() == [], "nothing is sent before there is a key"
    carrier.give(stream, "sk-openai-7f3c9d")
    assert answer_of(carrier).startswith(b"HTTP/1.1 200")
    (seen,) = provider.take()
    assert seen["headers"]["authorization"] == "Bearer sk-openai-7f3c9d" and seen["path"] == "/v1/models"


def test_refused_keys_send_nothing(carrier, provider):
    carrier.dial()
    carrier.vault.send(FAIL, "VAULT_REDEEM", {1: "forbidden", 3: "the key was not lent for this"}, carrier.asked()[0])
    with pytest.raises(Failed, match="forbidden"):
        carrier.api.answer()
    for bad in ("", "a b", "a\r\nx-more: b", "\x7f", "ä"):
        carrier.dial()
        carrier.give(carrier.asked()[0], bad)
        with pytest.raises(Failed, match="unavailable"):
            carrier.api.answer()
    for wrong in ({"_5": None}, {"_5": b"x" * 65}, {"_6": None}):
        carrier.dial(**wrong)
        with pytest.raises(Failed, match="invalid_argument"):
            carrier.api.answer()
    assert provider.take() == []


def test_the_vault_is_not_asked_for_who_cannot_prove_it(carrier, provider):
    """The certificate is for 127.0.0.1 and not for that name."""
    carrier.dial("localhost")
    with pytest.raises(Failed, match="unavailable"):
        carrier.api.answer()
    carrier.vault.end.setblocking(False)
    with pytest.raises(BlockingIOError):
        carrier.vault.receive()
    assert provider.take() == []


def test_the_vault_goes_and_comes(carrier, provider):
    carrier.dial()
    carrier.asked()
    carrier.leave()
    with pytest.raises(Failed, match="unavailable"):
        carrier.api.answer()
    carrier.dial()
    with pytest.raises(Failed, match="unavailable"):
        carrier.api.answer()
    carrier.join()
    carrier.dial()
    carrier.dial()
    first, second = carrier.asked()[0], carrier.asked()[0]
    carrier.give(second, "sk-openai-7f3c9d")
    assert answer_of(carrier).startswith(b"HTTP/1.1 200")
    carrier.vault.send(EVENT, "AI_VAULT", {})  # what it did not ask for is nothing to it
    carrier.give(second, "sk-other")
    carrier.give(first, "sk-openai-7f3c9d")
    assert answer_of(carrier).startswith(b"HTTP/1.1 200")
    assert {seen["headers"]["authorization"] for seen in provider.take()} == {"Bearer sk-openai-7f3c9d"}
