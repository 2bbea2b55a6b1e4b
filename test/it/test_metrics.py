"""GET /metrics: Prometheus text that parses, and counters that move."""

import re

import paddock

SAMPLE = re.compile(
    r'^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?:[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*",?)*\})? (-?[0-9.eE+-]+|NaN|[+-]Inf)$')


def parse(text):
    """{name with labels: value}; asserts the exposition format on the way."""
    assert text.endswith("\n")
    kinds, samples = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in ("counter", "gauge", "histogram", "summary", "untyped")
            assert name not in kinds, f"{name} has two types"
            kinds[name] = kind
        elif line.startswith("# HELP "):
            assert len(line.split(" ", 3)) == 4
        elif line and not line.startswith("#"):
            match = SAMPLE.match(line)
            assert match, f"not a sample: {line!r}"
            name = match[1]
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert name in kinds or base in kinds, f"{name} has no type"
            if kinds.get(name) == "counter":
                assert name.endswith("_total"), f"{name} is a counter without _total"
            key = name + (match[2] or "")
            assert key not in samples, f"{key} appears twice"
            samples[key] = float(match[3])
    return samples


def scrape(api):
    response = api.get("/metrics")
    assert response.status == 200 and response.headers["content-type"].startswith("text/plain")
    return parse(response.body.decode())


def total(samples, word):
    matching = {name: value for name, value in samples.items() if re.search(word, name)}
    assert matching, f"no metric matches {word!r} in {sorted(samples)}"
    return sum(matching.values())


def test_counters_move(own_daemon):
    daemon = own_daemon().start()
    api = daemon.client()
    before = scrape(api)
    box = api.create()
    box.exec(["true"])
    during = scrape(api)
    assert api.get("/nothing").status == 404
    box.delete()
    after = scrape(api)
    requests = "requests_total"
    assert total(before, requests) < total(during, requests) < total(after, requests)
    running = r"(boxes|sandboxes)(_running)?(\{.*running.*\})?$"
    assert total(during, running) == total(before, running) + 1 == total(after, running) + 1
    for name, value in before.items():
        if name.split("{")[0].endswith("_total"):
            assert during.get(name, 0) >= value, f"{name} went back"


def test_no_ids_in_labels(own_daemon):
    """A label per box is a series per box, for ever."""
    daemon = own_daemon().start()
    api = daemon.client()
    box = api.create(name="a-name", metadata={"k": "a-value"})
    text = api.get("/metrics").body.decode()
    for word in (box.id, "a-name", "a-value", daemon.key):
        assert word not in text


def test_metrics_under_their_own_names(api):
    assert all(name.startswith(("paddock_", "process_")) for name in scrape(api))


