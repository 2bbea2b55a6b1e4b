"""The reference of the REST API, as Markdown, from api/openapi.yaml: a page for each tag with every operation (parameters, body, answers,
an example), and one with the schemas."""
import json
import re

METHODS = ("get", "post", "put", "patch", "delete", "head", "options")
DEPTH = 3  # of objects in objects that a table shows


class Reference:
    def __init__(self, document):
        self.document = document
        self.used = []  # schemas in the order in which they are named

    def resolve(self, thing):
        while isinstance(thing, dict) and "$ref" in thing:
            at = self.document
            for part in thing["$ref"].removeprefix("#/").split("/"):
                at = at[part]
            thing = at
        return thing

    # ---- types ----

    def named(self, schema):
        """A link to the schema's own description."""
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](schemas.md#{name.lower()})"

    def kind(self, schema):
        """A type in words, as Markdown."""
        if "$ref" in schema:
            return self.named(schema) if re.fullmatch(r"#/components/schemas/\w+", schema["$ref"]) else self.kind(self.resolve(schema))
        for join in ("oneOf", "anyOf", "allOf"):
            if join in schema:
                parts = [self.kind(part) for part in schema[join] if part.get("type") != "null"]
                return (" or " if join != "allOf" else " and ").join(dict.fromkeys(parts)) or "null"
        types = schema.get("type", "object" if "properties" in schema else "any")
        types = [one for one in (types if isinstance(types, list) else [types]) if one != "null"]
        out = []
        for one in types:
            if one == "array":
                out.append(f"array of {self.kind(schema.get('items', {}))}")
            elif one == "object" and isinstance(schema.get("additionalProperties"), dict) and "properties" not in schema:
                out.append(f"object of {self.kind(schema['additionalProperties'])}")
            else:
                out.append(one)
        return " or ".join(out)

    @staticmethod
    def limits(schema):
        """Enumerations, ranges and defaults, in words."""
        said = []
        values = [value for value in schema.get("enum", ()) if value is not None]
        if values:
            said.append("One of " + ", ".join(f"`{value}`" for value in values) + ".")
        if "const" in schema:
            said.append(f"Always `{json.dumps(schema['const'])}`.")
        low, high = schema.get("minimum"), schema.get("maximum")
        if low is not None and high is not None:
            said.append(f"From {low} to {high}.")
        elif low is not None:
            said.append(f"At least {low}.")
        elif high is not None:
            said.append(f"At most {high}.")
        for key, words in (("maxLength", "characters"), ("maxItems", "entries")):
            if key in schema:
                said.append(f"At most {schema[key]} {words}.")
        if "pattern" in schema:
            said.append(f"Matches `{schema['pattern']}`.".replace("|", "\\|"))
        if schema.get("default") is not None:
            said.append(f"Default `{json.dumps(schema['default'])}`.")
        return said

    def meaning(self, schema):
        target = self.resolve(schema)
        words = schema.get("description") or (target.get("description", "") if "$ref" not in schema else "")
        return " ".join([one_line(words), *self.limits(target if "$ref" not in schema else schema)]).strip()

    def rows(self, schema, prefix="", depth=0):
        """(name, type, required, meaning) of the members of an object."""
        schema = self.resolve(schema)
        for part in schema.get("allOf", ()):
            yield from self.rows(part, prefix, depth)
        required = set(schema.get("required", ()))
        for name, member in schema.get("properties", {}).items():
            yield prefix + name, self.kind(member), name in required, self.meaning(member)
            inner, suffix = member, "."
            if "items" in member:
                inner, suffix = member["items"], "[]."
            if "$ref" not in inner and depth < DEPTH and ("properties" in inner or "allOf" in inner):
                yield from self.rows(inner, prefix + name + suffix, depth + 1)

    def table(self, schema):
        rows = list(self.rows(schema))
        if not rows:
            return ""
        out = ["| member | type | meaning |", "|---|---|---|"]
        for name, kind, required, words in rows:
            out.append(f"| `{name}`{' (required)' if required else ''} | {kind} | {words} |")
        return "\n".join(out) + "\n"

    # ---- operations ----

    def parameters(self, item, operation):
        found = [self.resolve(one) for one in (*item.get("parameters", ()), *operation.get("parameters", ()))]
        if not found:
            return ""
        out = ["**Parameters**\n", "| parameter | in | type | meaning |", "|---|---|---|---|"]
        for one in found:
            words = " ".join([one_line(one.get("description", "")), *self.limits(one.get("schema", {}))]).strip()
            out.append(f"| `{one['name']}`{' (required)' if one.get('required') else ''} | {one['in']} | {self.kind(one.get('schema', {}))} | {words} |")
        return "\n".join(out) + "\n"

    def body(self, operation):
        if "requestBody" not in operation:
            return ""
        body = self.resolve(operation["requestBody"])
        out = ["**Body**\n"]
        for kind, content in body.get("content", {}).items():
            schema = content.get("schema", {})
            words = self.kind(schema) if schema else ""
            out.append(f"`{kind}`{f': {words}' if words and words != 'string' else ''}{'' if body.get('required') else ' (optional)'}\n")
            out.append(self.table(schema))
            for name, example in content.get("examples", {}).items():
                out.append(f"Example ({one_line(example.get('summary') or name)}):\n\n```json\n{json.dumps(example['value'], indent=2)}\n```\n")
        return "\n".join(out)

    def answers(self, operation):
        out = ["**Answers**\n", "| status | type | meaning |", "|---|---|---|"]
        inline = []
        for status, answer in operation["responses"].items():
            answer = self.resolve(answer)
            kinds = []
            for kind, content in answer.get("content", {}).items():
                schema = content.get("schema", {})
                words = self.kind(schema) if schema else ""
                kinds.append(f"`{kind}`" + (f": {words}" if words not in ("", "string", "any") else ""))
                if "$ref" not in schema and str(status).startswith("2"):
                    inline.append((status, self.table(schema)))
            shown = "otherwise" if status == "default" else f"`{status}`"
            out.append(f"| {shown} | {'; '.join(kinds) or 'no body'} | {one_line(answer.get('description', ''))} |")
        out.append("")
        for status, table in inline:
            if table:
                out.append(f"Members of the answer {status}:\n\n{table}")
        return "\n".join(out)

    def operation(self, path, method, item, operation):
        out = [f"## {operation['summary']} {{#{operation['operationId']}}}\n", f"```text\n{method.upper()} {path}\n```\n"]
        out.append(operation.get("description", "").strip() + "\n")
        for sample in operation.get("x-codeSamples", ()):
            out.append(f"```sh\n{sample['source'].strip()}\n```\n")
        out += [self.parameters(item, operation), self.body(operation), self.answers(operation)]
        return "\n".join(part for part in out if part.strip()) + "\n"

    def pages(self):
        """{name: Markdown}: one for each tag, and "schemas"."""
        pages = {}
        for tag in self.document["tags"]:
            pages[tag["name"]] = [f"# API: {tag['name']}\n\n{tag.get('description', '')}\n"]
        for path, item in self.document["paths"].items():
            for method in METHODS:
                if method in item:
                    for tag in item[method]["tags"][:1]:
                        pages[tag].append(self.operation(path, method, item, item[method]))
        pages = {name: "\n".join(parts) for name, parts in pages.items() if len(parts) > 1}
        out = ["# API: schemas\n\nThe objects of requests and answers.\n"]
        for name, schema in sorted(self.document["components"]["schemas"].items()):
            words = schema.get("description", "").strip()
            out.append(f"## {name} {{#{name.lower()}}}\n\n{words}\n\n{self.table(schema) or self.bare(schema)}")
        pages["schemas"] = "\n".join(out)
        return pages

    def bare(self, schema):
        """A schema without members of its own."""
        return f"{self.kind(schema)}. {' '.join(self.limits(schema))}\n"


def one_line(text):
    """For a cell: one paragraph, bars escaped."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")
