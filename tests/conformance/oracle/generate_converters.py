"""Generates questions about converters: data to serialize, and bytes to deserialize: valid, mutated and truncated."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any

from conformance.oracle import generate_data as data
from conformance.oracle.generate_data import maybe
from conformance.oracle.samples import LOGICAL, NAMES

Json = Any

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_STRING = "org.apache.kafka.connect.storage.StringConverter"
_HEADER = "org.apache.kafka.connect.storage.SimpleHeaderConverter"
_CONVERTERS = "org.apache.kafka.connect.converters."
_NUMBERS = ("Boolean", "Short", "Integer", "Long", "Float", "Double", "ByteArray")

_HEADER_TOKENS = [
    "1",
    "-2",
    "128",
    "3.5",
    "1e5",
    "true",
    "false",
    "null",
    '"a"',
    '"a\\"b"',
    "a",
    "b c",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    " ",
    "\\",
    '"',
    ",,",
    "2022-04-15",
    "05:20:00.123Z",
    "2022-04-15T05:20:00.123Z",
    "[1,2]",
    "[]",
    "{}",
    '{"k":1}',
    "é",
    "NaN",
    "9223372036854775808",
    "'",
    "\n",
]
_RAW_NUMBERS = [
    "01",
    "-0",
    "1.0",
    "1e2",
    "1E400",
    "1e-400",
    "-",
    "+1",
    ".5",
    "1.",
    "123456789012345678901234567890",
    "0.1",
    "1e",
    "NaN",
    "-Infinity",
    "00",
    "0x1",
    "1e5",
]


def question(random: Random, public: list[Json]) -> Json:
    """Return a new question about a converter."""
    kind = random.choice(
        ["json_to"] * 7 + ["json_from"] * 5 + ["header_to"] * 5 + ["header_from"] * 2 + ["number"] * 3 + ["string"] * 2
    )
    made = _MAKERS[kind](random, public)
    return {"kind": "converter", "category": f"Generated.{kind}", "is_key": maybe(random, 0.2), "topic": "t", **made}


# --- JSON --------------------------------------------------------------------------------------------------------------


def _json_config(random: Random) -> dict[str, str]:
    config = {"schemas.enable": random.choice(["true", "true", "true", "false", "false"])}
    if maybe(random, 0.25):
        config["decimal.format"] = random.choice(["NUMERIC", "numeric", "BASE64", "x" if maybe(random, 0.1) else "NUMERIC"])
    if maybe(random, 0.25):
        config["replace.null.with.default"] = random.choice(["true", "false", "false"])
    if maybe(random, 0.05):
        config["schemas.cache.size"] = random.choice(["0", "1", "x", "-1"])
    if maybe(random, 0.08):
        content = json.dumps(json_schema(random, data.schema(random, 1)))
        config["schema.content"] = _scratched(random, content) if maybe(random, 0.1) else content
    return config


def _json_from(random: Random, _public: list[Json]) -> Json:
    header = maybe(random, 0.05)
    return {
        "class": _JSON,
        "op": "from_header" if header else "from_connect",
        "config": _json_config(random),
        "data": data.data(random),
    }


def _json_to(random: Random, public: list[Json]) -> Json:
    config = _json_config(random)
    base: Json
    if maybe(random, 0.2):
        texts = [vector["text"] for vector in public if vector.get("class") == _JSON and "text" in vector]
        text = random.choice(texts)
        try:
            base = json.loads(text)
        except ValueError:
            return {"class": _JSON, "op": "to_connect", "config": config, "text": _scratched(random, text)}
    else:
        schema = data.schema(random)
        base = {"schema": json_schema(random, schema), "payload": _json_payload(random, schema, data.value(random, schema))}
        if config["schemas.enable"] == "false" or "schema.content" in config:
            base = base["payload"] if maybe(random, 0.8) else base
    for _ in range(random.choice([0, 0, 0, 1, 1, 2])):
        base = _mutated(random, base)
    text = json.dumps(base, ensure_ascii=maybe(random, 0.5))
    if maybe(random, 0.1):
        text = _scratched(random, text)
    if maybe(random, 0.03):
        encoded = text.encode(random.choice(["utf-16", "utf-16-le", "utf-32", "utf-8-sig", "latin-1"]), "replace")
        return {"class": _JSON, "op": "to_connect", "config": config, "bytes": base64.b64encode(encoded).decode()}
    return {"class": _JSON, "op": "to_header" if maybe(random, 0.04) else "to_connect", "config": config, "text": text}


def json_schema(random: Random, schema: Json) -> Json:
    """Return a schema in JsonConverter's format, whose defaults of some types differ from the vectors' format."""
    made = {name: part for name, part in schema.items() if name != "default"}
    if "default" in schema:
        made["default"] = _json_payload(random, schema, schema["default"])
    for part in ("items", "keys", "values"):
        if part in schema:
            made[part] = json_schema(random, schema[part])
    if "fields" in schema:
        made["fields"] = [json_schema(random, field) for field in schema["fields"]]
    return made


def _json_payload(random: Random, schema: Json, value: Json) -> Json:
    if schema.get("name") == LOGICAL + "Decimal" and maybe(random, 0.4):
        return random.choice([1, 1.5, -0.25, 12345678901234567890, 1e10, "1.5", 0])
    if isinstance(value, dict) and schema["type"] == "struct":
        return {field["field"]: _json_payload(random, field, value.get(field["field"])) for field in schema["fields"]}
    if isinstance(value, list) and schema["type"] == "array":
        return [_json_payload(random, schema["items"], item) for item in value]
    return value


def _any_json(random: Random) -> Json:
    odd = [
        [],
        {},
        [[]],
        {"": None},
        [None, 1],
        [1, 2],
        [["a", 1]],
        "",
        2**63,
        -(2**63) - 1,
        2**100,
        1e300,
        5.9,
        -0.0,
        "AQ==",
        "a=b",
        {"type": "int32"},
        {"type": "nope"},
    ]
    return random.choice(odd) if maybe(random, 0.5) else data.plain(random, 1)


def _mutated(random: Random, base: Json) -> Json:
    """Return JSON with one node changed, removed, duplicated or added."""
    if not isinstance(base, (dict, list)) or not base or maybe(random, 0.15):
        return _any_json(random)
    if isinstance(base, list):
        index = random.randrange(len(base))
        changed = [_mutated(random, base[index])] if maybe(random, 0.6) else random.choice([[], [base[index]] * 2, [None]])
        return [*base[:index], *changed, *base[index + 1 :]]
    name = random.choice(list(base))
    if maybe(random, 0.7):
        return {**base, name: _mutated(random, base[name])}
    if maybe(random, 0.5):
        return {key: value for key, value in base.items() if key != name}
    schema_words = [
        "optional",
        "name",
        "version",
        "doc",
        "parameters",
        "default",
        "type",
        "field",
        "fields",
        "items",
        "keys",
        "values",
        "schema",
        "payload",
    ]
    return {**base, random.choice([*schema_words, *NAMES]): _any_json(random)}


def _scratched(random: Random, text: str) -> str:
    """Return a text with a few characters removed, added or moved."""
    for _ in range(random.choice([1, 1, 2])):
        index = random.randint(0, len(text))
        piece = random.choice(
            [
                '"',
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                "\\",
                " ",
                "0",
                "e",
                "-",
                "/",
                "\\u00e9",
                "\\ud83d",
                "\t",
                "\n",
                "null",
                "tru",
                *_RAW_NUMBERS,
            ]
        )
        text = random.choice(
            [text[:index] + piece + text[index:], text[:index] + text[index + 1 :], text[:index], text + piece, piece + text]
        )
    return text


# --- headers, numbers, strings -----------------------------------------------------------------------------------------


def _header_to(random: Random, public: list[Json]) -> Json:
    choice = random.random()
    if choice < 0.3:
        text = data.text(random)
    elif choice < 0.65:
        text = "".join(random.choice(_HEADER_TOKENS) for _ in range(random.randint(1, 6)))
    elif choice < 0.85:
        text = json.dumps(data.plain(random, 3), ensure_ascii=False)
        text = _scratched(random, text) if maybe(random, 0.3) else text
    else:
        text = _scratched(
            random, random.choice([vector["text"] for vector in public if vector.get("class") == _HEADER and "text" in vector])
        )
    return {"class": _HEADER, "op": "to_header", "config": {}, "text": text}


def _header_from(random: Random, _public: list[Json]) -> Json:
    return {"class": _HEADER, "op": "from_header", "config": {}, "data": data.data(random)}


def _number(random: Random, _public: list[Json]) -> Json:
    name = random.choice(_NUMBERS)
    made: Json = {"class": f"{_CONVERTERS}{name}Converter", "config": {}}
    header = maybe(random, 0.25)
    if maybe(random, 0.5):
        size = {"Boolean": 1, "Short": 2, "Integer": 4, "Long": 8, "Float": 4, "Double": 8}.get(name, 3)
        size = size if maybe(random, 0.7) else random.randint(0, 9)
        odd = random.choice([b"\0", b"\x01", b"\xff", b"\x7f", b"\x80"]) + random.choice([b"\0", b"\xff", b"\xf8"]) * max(
            size - 1, 0
        )
        content = odd[:size] if maybe(random, 0.5) else random.randbytes(size)
        if maybe(random, 0.05):
            return {**made, "op": "to_header" if header else "to_connect", "bytes": None}
        return {**made, "op": "to_header" if header else "to_connect", "bytes": base64.b64encode(content).decode()}
    fitting = {
        "Boolean": "boolean",
        "Short": "int16",
        "Integer": "int32",
        "Long": "int64",
        "Float": "float",
        "Double": "double",
    }.get(name, "bytes")
    if maybe(random, 0.5):
        schema = {"type": fitting, "optional": maybe(random, 0.5)}
        given = {"schema": schema, "payload": data.value(random, schema)}
    else:
        given = data.data(random, kind=random.choice(["scalar", "any", "typed", "misfit"]))
    return {**made, "op": "from_header" if header else "from_connect", "data": given}


def _string(random: Random, _public: list[Json]) -> Json:
    header = maybe(random, 0.3)
    encodings = [
        "UTF-8",
        "utf8",
        "UTF-16",
        "ISO-8859-1",
        "US-ASCII",
        "nope",
        "UTF-16LE",
        "windows-1252",
        "",
        "latin1",
        "UTF-32",
        "Shift_JIS",
    ]
    config = {random.choice(["converter.encoding", "encoding"]): random.choice(encodings)} if maybe(random, 0.2) else {}
    if maybe(random, 0.7):
        return {"class": _STRING, "op": "from_header" if header else "from_connect", "config": config, "data": data.data(random)}
    made: Json = {"class": _STRING, "op": "to_header" if header else "to_connect", "config": config}
    if maybe(random, 0.4):
        return {**made, "bytes": base64.b64encode(random.randbytes(random.randint(0, 6))).decode()}
    return {**made, "text": data.text(random)}


_MAKERS = {
    "json_from": _json_from,
    "json_to": _json_to,
    "header_to": _header_to,
    "header_from": _header_from,
    "number": _number,
    "string": _string,
}
