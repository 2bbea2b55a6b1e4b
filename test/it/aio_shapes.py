"""Whether an answer of AIO's API has the shape that its document promises.

    aio_shapes.check(answer, "POST", "/v1/shell/exec")  # a reply of paddock.Client; the parsed body comes back

What failed is an AssertionError that says where. Answers of 401, 403, 404, 405, 413 and 5xx are not in the
document: they must be the envelope all the same. test/it/aio/shapes.json is the reduced document
(scripts/aio-shapes).
"""

import json
import pathlib
import re

SHAPES = json.loads((pathlib.Path(__file__).parent / "aio" / "shapes.json").read_text())
ENVELOPE = {"type": "object", "required": ["success", "message"],
            "properties": {"success": {"type": "boolean"}, "message": {"type": "string"}}}
TYPES = {
    "object": lambda v: isinstance(v, dict),
    "array": lambda v: isinstance(v, list),
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, (int, float)) and not isinstance(v, bool),
    "null": lambda v: v is None,
}


def faults(value, schema, where="$"):
    """What is wrong with a value, as a list of sentences."""
    if "$ref" in schema:
        return faults(value, SHAPES["schemas"][schema["$ref"].rpartition("/")[2]], where)
    found = []
    for one in ("anyOf", "oneOf"):
        if one in schema:
            tries = [faults(value, s, where) for s in schema[one]]
            if all(tries):
                # The alternative that went furthest says most: not "is no null".
                found += max(tries, key=lambda t: max(len(s.split(": ")[0]) for s in t))
    for s in schema.get("allOf", ()):
        found += faults(value, s, where)
    if "type" in schema:
        types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(TYPES[t](value) for t in types):
            return found + [f"{where}: {value!r:.80} is no {' or '.join(types)}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r:.80} is none of {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: {value!r:.80} is not {schema['const']!r}")
    if TYPES["number"](value):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            found.append(f"{where}: {value!r} is out of range")
    if isinstance(value, dict):
        found += [f"{where}: has no {k}" for k in schema.get("required", ()) if k not in value]
        properties, more = schema.get("properties", {}), schema.get("additionalProperties")
        for k, v in value.items():
            if k in properties:
                found += faults(v, properties[k], f"{where}.{k}")
            elif isinstance(more, dict):
                found += faults(v, more, f"{where}.{k}")
    if isinstance(value, list) and "items" in schema:
        for i, v in enumerate(value):
            found += faults(v, schema["items"], f"{where}[{i}]")
    return found


def operation(method, path):
    """The statuses of an operation; path as the document has it, or with values for its {names}."""
    path = path.split("?")[0]
    for pattern in [path] + sorted(SHAPES["paths"]):
        shape = "[^/]+".join(re.escape(p) for p in re.split(r"\{[^/]+\}", pattern))
        if pattern in SHAPES["paths"] and re.fullmatch(shape, path):
            found = SHAPES["paths"][pattern].get(method.lower())
            if found is not None:
                return found
    raise AssertionError(f"the document has no {method} {path}")


def check(answer, method, path):
    """The answer's body, which fits the document; an AssertionError otherwise."""
    statuses = operation(method, path)
    shape = statuses.get(str(answer.status))
    if shape is None:
        assert answer.status in (401, 403, 404, 405, 413) or answer.status >= 500, \
            f"{method} {path}: the document has no {answer.status}: {answer}"
        shape = ENVELOPE
    if "media" in shape:
        return answer.body
    document = answer.json()
    wrong = faults(document, shape)
    assert not wrong, f"{method} {path} {answer.status}: " + "; ".join(wrong)
    return document


def call(client, box, method, path, document=None, headers=None):
    """A request below /sandbox/{box}, checked: the document, of an answer with status 200 unless it is 422."""
    more = dict(headers or {})
    if document is not None:
        more["Content-Type"] = "application/json"
    body = None if document is None else json.dumps(document).encode()
    answer = client.request(method, f"/sandbox/{box.id}{path}", body, more)
    found = check(answer, method, path)
    assert answer.status in (200, 422), answer
    return found
