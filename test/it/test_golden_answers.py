"""What every route answers is as recorded: without a key, about something that does not exist, to a body that is none, and with success.

One daemon, one walk over golden/routes.txt. What the steps of a dialect are is in golden_walk.py; a route without a recorded success is there with
its reason. Then, of the same daemon: the metrics, and the rows of its store.
"""

import json
import re
from types import SimpleNamespace

import pytest

import paddock
import test_aio_walk
from golden_kit import Normal, answer_text, compare, recorded, tables
from golden_walk import DIALECTS, ELSEWHERE, JSON, WITHOUT

LABEL = 150  # characters of what was asked
LONG = 20_000  # bytes of a document that is checked elsewhere
WOBBLY = {"GET /v1/bash/sessions"}  # after a kill: whether the command has ended yet
BODIES = ("POST", "PUT", "PATCH")


class Walk:
    def __init__(self, daemon):
        self.daemon, self.client, self.nobody = daemon, daemon.client(), paddock.Client(daemon)
        self.words, self.found, self.done, self.wrong = {}, {}, set(), []
        self.opaque = {(method, route) for steps, end, _ in DIALECTS.values() for method, route, _, what in steps + end if what.get("opaque")}
        self.normal = Normal({f"{daemon.host}:{daemon.port}": "daemon", f"localhost:{daemon.port}": "daemon", str(daemon.base): "dir",
                              daemon.key: "key", f"paddock_session_{daemon.port}": "cookie"}, figures="stopped_us|timestamp")

    def fill(self, value, words=None):
        words = self.words if words is None else words
        if isinstance(value, str):
            return re.sub(r"\{(\w+)\}", lambda m: words.get(m[1], m[0]), value)
        if isinstance(value, dict):
            return {name: self.fill(each) for name, each in value.items()}
        return value

    def ask(self, client, prefix, method, path, body=None, headers=None):
        headers = dict(headers or {})
        if prefix.isdigit() and "E2b-Sandbox-Id" not in headers:
            headers["Host"] = f"{prefix}-{self.words['id']}.localhost:{self.daemon.port}"
        elif not prefix.isdigit():
            path = self.fill(prefix) + path
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", JSON)
        return client.request("GET" if method == "*" else method, path, body, headers)

    def shaped(self, answer, opaque=False):
        """An answer of which the types count."""
        document = not opaque and answer.headers.get("content-type", "").startswith(JSON) and len(answer.body) < LONG
        return answer_text(answer, self.normal, only_shape=document, opaque=not document)

    def note(self, heading, route, label, text):
        self.found.setdefault(heading, {}).setdefault(route, []).append((label, text))

    # ---- errors, of every route alike

    def errors(self, heading, route, prefix):
        method, path = route.split(" ", 1)
        dummy = {name: "9" if name == "port" else "nobody" for name in re.findall(r"\{(\w+)\}", path)}
        asks = [("without a key", self.nobody, None), ("of nobody", self.client, None)]
        if method in BODIES:
            asks = [("without a key", self.nobody, {}), ("of nobody", self.client, {}), ("no JSON", self.client, b"{"), ("a list", self.client, []),
                    ("an unknown member", self.client, {"golden_unknown": 1})]
        for label, client, body in asks:
            answer = self.ask(client, prefix, method, self.fill(path, dummy), body)
            text = self.shaped(answer, (method, path) in self.opaque) if answer.status < 400 else answer_text(answer, self.normal)
            self.note(heading, route, label, text)

    # ---- what is meant to succeed

    def step(self, heading, prefix, method, route, body, what):
        bare = route.partition("?")[0]
        words = {**self.words, **{name: self.fill(value) for name, value in what.get("at", {}).items()}}
        path, headers, wanted = self.fill(route, words), self.fill(what.get("headers", {})), what.get("status", (200, 201, 202, 204))

        def ask():
            return self.ask(self.client, prefix, method, path, self.fill(body), headers)

        def fits(until):
            answers.append(ask())
            if isinstance(until, tuple):
                return answers[-1].status in until
            return answers[-1].json()[until] if isinstance(until, str) else until.items() <= answers[-1].json().items()

        answers = []
        if "until" in what:
            paddock.until(lambda: fits(what["until"]), f"{method} {path}")
        answer = answers[-1] if answers else ask()
        if wanted and answer.status not in (wanted if isinstance(wanted, tuple) else (wanted,)):
            self.wrong.append(f"{heading}: {method} {path} {body!r:.100}: {answer}")
        for word, place in what.get("learn", {}).items() if answer.status < 400 else ():
            value = answer.json()
            for part in place.split("."):
                value = value[int(part)] if part.isdigit() else value[part]
            self.words[word] = value
            self.normal.knows(word, value)
        if answer.status < 400:
            self.done.add((heading, f"{method} {bare}"))
        told = what.get("label") or ("" if body is None else body.decode(errors="replace") if isinstance(body, bytes) else json.dumps(body))
        label = " ".join([route[len(bare):], json.dumps(what["at"]) if what.get("at") else "", self.normal.text(told)])
        label = re.sub(r"\s+", " ", label).strip()[:LABEL] or "asked"
        self.note(heading, f"{method} {bare}", label, answer_text(answer, self.normal, what.get("shape"), what.get("opaque")))

    def aio(self):
        """The table of test_aio_walk.py, of which each answer is checked against AIO's document there."""
        names = {re.sub(r"\{\w*\}", "{}", route): route for route in routes()["aio"]}
        box, seen = SimpleNamespace(id=self.words["id"]), {}
        for method, path, good, bad in test_aio_walk.WALK:
            route = names[re.sub(r"\{\w*\}", "{}", f"{method} {path}")]
            for label, what in (("failure", bad), ("success", good)):
                if what is test_aio_walk.NONE or what == "streams":
                    continue
                answer = test_aio_walk.send(self.client, box, method, path, what, seen)
                document = answer.json() if answer.headers.get("content-type", "").startswith(JSON) else None
                if label == "success":
                    if answer.status != 200 or isinstance(document, dict) and document.get("success") is False:
                        self.wrong.append(f"aio: {route}: {answer}")
                    self.done.add(("aio", route))
                    if isinstance(document, dict):
                        seen[f"{method} {path}"] = document.get("data")
                if route in WOBBLY:
                    continue
                self.note("aio", route, label, self.shaped(answer) if label == "success" else answer_text(answer, self.normal))


def routes():
    return {heading: [line for line in text.splitlines() if line] for heading, text in recorded("routes").items()}


@pytest.fixture(scope="module")
def walk(daemon_factory):
    daemon = daemon_factory("gold", environment={"PADDOCK_WEBHOOKS_REFUSE": "link-local", "PADDOCK_EGRESS_DETECT": "false",
                                                "PADDOCK_DEFAULTS_DISK_MB": "2048"}).start()
    it = Walk(daemon)
    it.words.update(adminkey=daemon.key, origin=daemon.url)
    it.normal.knows("version", it.client.get("/health").json()["version"])
    for heading, (steps, _, prefix) in DIALECTS.items():
        for one in steps:
            it.step(heading, prefix, *one)
    it.aio()
    it.metrics, it.rows = it.client.get("/metrics").body.decode(), tables(next((daemon.data_dir / "store").glob("*.db")))
    used, it.words["id"] = it.words["id"], it.words["other"]  # in which nothing runs
    for heading, (_, _, prefix) in DIALECTS.items():
        for route in routes()[heading]:
            it.errors(heading, route, prefix)
    it.words["id"] = used
    for heading, (_, end, prefix) in DIALECTS.items():
        for one in end:
            it.step(heading, prefix, *one)
    daemon.delete_all()
    yield it
    it.client.close()
    it.nobody.close()
    daemon.finish()


def test_every_route_has_a_success_or_a_reason(walk):
    assert not walk.wrong, "\n".join(walk.wrong)
    assert set(routes()) == set(DIALECTS) | set(ELSEWHERE), "a dialect that is not walked through needs a reason"
    known = {(heading, route) for heading in DIALECTS for route in routes()[heading]}
    assert walk.done <= known, "steps of routes that there are not"
    excused = set().union(*WITHOUT.values())
    missing = {f"{heading}: {route}" for heading, route in known - walk.done}
    assert missing - excused == set(), "neither a success nor a reason"
    assert excused - missing == set(), "a reason is not needed"


@pytest.mark.parametrize("heading", DIALECTS)
def test_answers(walk, heading):
    sections = {}
    for route, answers in walk.found[heading].items():
        texts = {}
        for label, text in answers:
            texts.setdefault(text, []).append(label)
        sections[route] = "\n".join(f"-- {', '.join(dict.fromkeys(labels))}\n{text}" for text, labels in texts.items())
    compare("answers_" + re.sub(r"\W+", "_", heading.partition(" (")[0]).lower(), sections)


def test_metrics(walk):
    """Every metric's help, type and labels."""
    found = {}
    for line in walk.metrics.splitlines():
        if line.startswith("# "):
            _, what, name, text = line.split(" ", 3)
            found.setdefault(name, []).append(f"{what}: {text}")
            continue
        name, labels = re.fullmatch(r"(\w+)(?:\{(.*)\})? \S+", line).groups()
        home = name if name in found else re.sub(r"_(bucket|sum|count)$", "", name)
        text = name + '{' + ', '.join(re.findall(r'(\w+)=', labels or '')) + '}'
        if text not in found[home]:
            found[home].append(text)
    assert len(found) > 20
    compare("metrics", {name: "\n".join(lines) for name, lines in found.items()})


def test_store(walk):
    """Tables and columns of the store, and the JSON in the rows that the walk left there."""
    assert len(walk.rows) > 10
    compare("store", walk.rows)
