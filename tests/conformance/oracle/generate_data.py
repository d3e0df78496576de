"""Generates schemas, values and records for questions: mostly valid, often edge cases, sometimes invalid."""

from __future__ import annotations

import base64
import struct
from random import Random
from typing import Any

from conformance.oracle.samples import DAYS, DOUBLES, INTS, LOGICAL, MOMENTS, NAMES, TEXTS, TIMES, Json


def maybe(random: Random, chance: float) -> bool:
    return random.random() < chance


def text(random: Random) -> str:
    if maybe(random, 0.7):
        return random.choice(TEXTS)
    return random.choice(TEXTS) + random.choice(["", " ", ",", ":", "0"]) + random.choice(TEXTS)


def integer(random: Random, bits: int) -> int:
    low, high = INTS[bits]
    if maybe(random, 0.4):
        return random.choice([0, 1, -1, low, high, low + 1, high - 1, 2, 7, 42, 100])
    if maybe(random, 0.6):
        return random.randint(max(low, -999), min(high, 9999))
    return random.choice([random.randint(low, high), max(low, min(high, random.choice(MOMENTS)))])


def double(random: Random, *, single: bool = False) -> Any:
    number: float | str = random.choice(DOUBLES) if maybe(random, 0.6) else round(random.uniform(-1e4, 1e4), random.randint(0, 6))
    if single and not isinstance(number, str):
        return struct.unpack(">f", struct.pack(">f", number))[0] if abs(number) < 3.4028235e38 else 1.5
    return number


def some_bytes(random: Random) -> str:
    data = random.choice([b"", b"\0", b"raw", b"\xff\xfe", "é".encode(), b"\x80" * 3, random.randbytes(random.randint(1, 9))])
    return base64.b64encode(data).decode()


def unscaled(random: Random) -> str:
    number = random.choice([0, 1, -1, 127, 128, -128, -129, 12345, 10**20, -(10**20) - 1, random.randint(-(10**6), 10**6)])
    return base64.b64encode(
        number.to_bytes((number if number >= 0 else -number - 1).bit_length() // 8 + 1, "big", signed=True)
    ).decode()


_PLAIN = ["int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes"]


def scalar_schema(random: Random) -> Json:
    kind = random.choice([*_PLAIN, "string", "int64", "Decimal", "Date", "Time", "Timestamp", "Timestamp"])
    if kind == "Decimal":
        return {
            "type": "bytes",
            "name": LOGICAL + kind,
            "version": 1,
            "parameters": {"scale": str(random.choice([0, 1, 2, 3, 10, -2]))},
        }
    if kind in ("Date", "Time", "Timestamp"):
        return {"type": "int64" if kind == "Timestamp" else "int32", "name": LOGICAL + kind, "version": 1}
    return {"type": kind}


def schema(random: Random, depth: int = 2, *, kind: str | None = None) -> Json:
    chosen = kind or (random.choice(["scalar"] * 5 + ["struct", "struct", "array", "map"]) if depth else "scalar")
    if chosen == "scalar":
        made = scalar_schema(random)
    elif chosen == "struct":
        names = random.sample(NAMES[:14] if maybe(random, 0.9) else NAMES, random.randint(0 if maybe(random, 0.1) else 1, 5))
        made = {"type": "struct", "fields": [{**schema(random, depth - 1), "field": name} for name in names]}
    elif chosen == "array":
        made = {"type": "array", "items": schema(random, depth - 1)}
    else:
        keys = {"type": "string"} if maybe(random, 0.75) else scalar_schema(random)
        if keys["type"] == "bytes":  # byte arrays cannot be map keys
            keys = {"type": "int32"}
        made = {"type": "map", "keys": {**keys, "optional": False}, "values": schema(random, depth - 1)}
    made["optional"] = maybe(random, 0.45)
    if "name" not in made and maybe(random, 0.12):
        made["name"] = random.choice(["com.x.N1", "com.x.N2", "n", "", "org.apache.kafka.connect.data.Nothing"])
    if "version" not in made and maybe(random, 0.08):
        made["version"] = random.choice([0, 1, 3, -1])
    if maybe(random, 0.06):
        made["doc"] = random.choice(["doc", "", "é"])
    if "parameters" not in made and maybe(random, 0.06):
        made["parameters"] = random.choice([{"p": "q"}, {"k": "v", "a": "b"}])
    if chosen == "scalar" and maybe(random, 0.2):
        made["default"] = value(random, {**made, "optional": False})
    return made


def value(random: Random, node: Json) -> Json:
    """Return a payload for a schema; null only where the schema allows it."""
    if (node.get("optional") or "default" in node) and maybe(random, 0.2):
        return None
    kind, name = node["type"], node.get("name") or ""
    if name == LOGICAL + "Decimal":
        return unscaled(random)
    if name == LOGICAL + "Date":
        return random.choice(DAYS) if maybe(random, 0.6) else random.randint(-800_000, 3_000_000)
    if name == LOGICAL + "Time":
        return random.choice(TIMES) if maybe(random, 0.5) else random.randint(0, 86_399_999)
    if name == LOGICAL + "Timestamp":
        return random.choice(MOMENTS) if maybe(random, 0.6) else random.randint(-(10**12), 2 * 10**12)
    if kind.startswith("int"):
        return integer(random, int(kind[3:]))
    if kind in ("float", "double"):
        return double(random, single=kind == "float")
    if kind == "array":
        return [value(random, node["items"]) for _ in range(random.choice([0, 1, 2, 3]))]
    if kind == "map":
        return _map(random, node)
    if kind == "struct":
        return {field["field"]: value(random, field) for field in node["fields"]}
    if kind == "boolean":
        return maybe(random, 0.5)
    return text(random) if kind == "string" else some_bytes(random)


def _map(random: Random, node: Json) -> Json:
    size = random.choice([0, 1, 2, 3])
    if node["keys"]["type"] == "string":
        return {random.choice(NAMES): value(random, node["values"]) for _ in range(size)}
    keys = {str(key): key for key in (value(random, {**node["keys"], "optional": False}) for _ in range(size)) if key is not None}
    return [[key, value(random, node["values"])] for key in keys.values()]


def plain(random: Random, depth: int = 2) -> Json:
    kind = random.choice(["text", "int", "int", "double", "bool", "null"] + (["list", "map", "map"] if depth else []))
    if kind == "list":
        return [plain(random, depth - 1) for _ in range(random.choice([0, 1, 2, 3]))]
    if kind == "map":
        return plain_map(random, depth)
    made = {
        "text": text(random),
        "int": integer(random, random.choice([8, 16, 32, 64])),
        "bool": maybe(random, 0.5),
        "null": None,
    }
    number = double(random)
    return made.get(kind, 1.5 if isinstance(number, str) else number)


def plain_map(random: Random, depth: int = 2) -> Json:
    return {random.choice(NAMES): plain(random, depth - 1) for _ in range(random.choice([0, 1, 2, 3, 5]))}


def node(random: Random, depth: int = 2) -> Json:
    """Return a typed node: any Java value, with schema or without."""
    kinds = [
        "int8",
        "int16",
        "int32",
        "int64",
        "float32",
        "float64",
        "boolean",
        "string",
        "bytes",
        "decimal",
        "biginteger",
        "date",
        "null",
    ]
    kind = random.choice(kinds + (["array", "map", "map", "struct"] if depth else []))
    if kind == "null":
        return None
    if kind == "struct":
        made = {**schema(random, 1, kind="struct"), "optional": False}
        return {"t": "struct", "schema": made, "v": value(random, made)}
    if kind == "map":
        return node_map(random, depth)
    decimals = ["0", "1", "-1.50", "12.340", "5E-10", "1E+3", "0.00", "123456789012345678901234567890.5", "-0.7", "128", "0E+2"]
    made = {
        "float32": lambda: double(random, single=True),
        "float64": lambda: double(random),
        "boolean": lambda: maybe(random, 0.5),
        "string": lambda: text(random),
        "bytes": lambda: some_bytes(random),
        "decimal": lambda: random.choice(decimals),
        "biginteger": lambda: random.choice(["0", "-5", "123456789012345678901234567890"]),
        "date": lambda: random.choice(MOMENTS),
        "array": lambda: [node(random, depth - 1) for _ in range(random.choice([0, 1, 2, 3]))],
    }
    return {"t": kind, "v": made[kind]() if kind in made else integer(random, int(kind[3:]))}


def node_map(random: Random, depth: int = 2) -> Json:
    names = random.sample(NAMES[:14], random.choice([0, 1, 2, 3, 5]))
    pairs = [[{"t": "string", "v": name}, node(random, depth - 1)] for name in names]
    if maybe(random, 0.01):
        pairs.append([random.choice([None, {"t": "int64", "v": 5}, {"t": "boolean", "v": True}]), node(random, 0)])
    return {"t": "map", "v": pairs}


def data(random: Random, name: str = "payload", *, kind: str | None = None) -> Json:
    """Return ``{schema, payload}``; of ``kind`` struct, map, typed, scalar, any or none."""
    usual = ["struct"] * 12 + ["map"] * 6 + ["typed"] * 4 + ["scalar"] * 4 + ["any"] * 2 + ["none"] * 2
    chosen = kind or random.choice([*usual, random.choice(["misfit", "other struct"]) if maybe(random, 0.1) else "struct"])
    if chosen == "none":
        return {"schema": None, name: None}
    if chosen in ("map", "any"):
        return {"schema": None, name: plain_map(random) if chosen == "map" else plain(random)}
    if chosen == "typed":
        return {"schema": None, name: None, "typed": node_map(random) if maybe(random, 0.7) else node(random)}
    if chosen == "other struct":
        return other_struct(random, name)
    if chosen == "misfit":
        return {"schema": schema(random, 1), name: None, "typed": node(random, 1)}
    made = (
        schema(random, kind="struct")
        if chosen == "struct"
        else schema(random, kind=random.choice(["scalar", "scalar", "array", "map"]))
    )
    return {"schema": made, name: value(random, made)}


def other_struct(random: Random, name: str) -> Json:
    """Return a struct whose schema differs from the record's."""
    own = schema(random, kind="struct")
    given = {**own, "fields": list(own["fields"])}
    change = random.choice(["less", "more", "optional", "name", "type", "order"])
    if change == "less" and given["fields"]:
        given["fields"].pop()
    elif change == "more":
        given["fields"].append({"type": "string", "optional": maybe(random, 0.5), "field": "more"})
    elif change == "type" and given["fields"]:
        given["fields"][0] = {**schema(random, 1), "field": given["fields"][0]["field"]}
    elif change == "order":
        given["fields"].reverse()
    else:
        given |= {"name": "other"} if change == "name" else {"optional": not own["optional"]}
    return {"schema": given, "struct_schema": own, name: value(random, {**own, "optional": False})}


def record(random: Random) -> Json:
    made: dict[str, Json] = {
        "side": random.choice(["sink", "sink", "source"]),
        "topic": random.choice(["orders", "a", "x-y", "logs.2024", "a-b-c", "", "é", "t$1", "aaa", "${timestamp}"]),
        "partition": random.choice([0, 1, 3, 7, None]),
        "timestamp": None if maybe(random, 0.07) else random.choice(MOMENTS),
    }
    if made["side"] == "sink":
        made["partition"] = made["partition"] or 0
        made["offset"] = random.choice([0, 42, 2**40])
    made["key"] = data(random, kind=random.choice(["struct", "map", "scalar", "none", "none", "typed"]))
    made["value"] = data(random)
    if made["value"].get("payload") is not None and maybe(random, 0.04):
        made["value"]["payload"] = None
    made["headers"] = [headers(random) for _ in range(random.choice([0, 0, 1, 2, 3]))]
    return made


def headers(random: Random) -> Json:
    made = data(random, "value", kind=random.choice(["scalar", "scalar", "map", "any", "struct"]))
    return {**made, "key": random.choice(["h1", "h2", "h3", "nh", "hf0", "H1", ""])}
