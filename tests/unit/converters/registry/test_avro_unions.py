"""Unions of AvroConverter: the branch is the one in the data, whatever its value, and is written again."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterator
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from sluiceway.converters.registry.avro import AvroConverter
from sluiceway.data import Schema, Struct
from sluiceway.errors import DataError
from support.column_forms import Tolerant, decoded_alike, encoded_alike
from support.schema_registry import Registry, schema_registry

Write = Callable[[], bytes]


@pytest.fixture(scope="module")
def registry() -> Iterator[Registry]:
    with schema_registry() as running:
        running.levels[""] = "NONE"
        yield running


def converter(registry: Registry, **options: str) -> AvroConverter:
    made = AvroConverter()
    made.configure({"schema.registry.url": registry.url, "enhanced.avro.schema.support": "true", **options}, is_key=False)
    return made


def long(number: int) -> bytes:
    """Return Avro's encoding of a long."""
    number = (number << 1) ^ (number >> 63)
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*data, number])


def sized(data: bytes) -> bytes:
    return long(len(data)) + data


class Types:
    """Random Avro types, each with a function that returns the encoding of a random value of it."""

    def __init__(self, seed: int) -> None:
        self.rng = Random(seed)  # noqa: S311
        self._count = 0
        self._known: list[tuple[str, Write]] = []
        rng = self.rng
        self._simple: dict[str, Write] = {
            "boolean": lambda: bytes([rng.randrange(2)]),
            "int": lambda: long(rng.choice((0, 1, -1, 2**31 - 1, -(2**31)))),
            "long": lambda: long(rng.choice((0, 1, -1, 2**31, 2**63 - 1, -(2**63)))),
            "float": lambda: struct.pack("<f", rng.choice((0.0, -1.5, 2.0**100))),
            "double": lambda: struct.pack("<d", rng.choice((0.0, -1.5, 0.1))),
            "string": lambda: sized(rng.choice(("", "A", "B", "ü" * 99)).encode()),
            "bytes": lambda: sized(rng.choice((b"", b"A", b"abc", b"\xff" * 99))),
        }

    def any(self, depth: int) -> tuple[Any, Write]:
        kinds = [*self._simple, "enum", "fixed", "known"] + (["record", "array", "map"] * 2 if depth else [])
        return self.of(self.rng.choice(kinds + (["union"] * 12 if depth else [])), depth)

    def of(self, kind: str, depth: int) -> tuple[Any, Write]:
        if kind in self._simple:
            return kind, self._simple[kind]
        if kind == "known":
            return self.rng.choice(self._known) if self._known else ("string", self._simple["string"])
        made: tuple[Any, Write] = getattr(self, f"_{kind}")(depth)
        return made

    def _name(self) -> dict[str, str]:
        self._count += 1
        return {"name": f"N{self._count}", "namespace": self.rng.choice(("a.b", "c"))}

    def _keep(self, node: dict[str, Any], write: Write) -> tuple[Any, Write]:
        self._known.append((f"{node['namespace']}.{node['name']}", write))
        return node, write

    def _enum(self, _depth: int) -> tuple[Any, Write]:
        return self._keep({"type": "enum", **self._name(), "symbols": ["A", "B"]}, lambda: long(self.rng.randrange(2)))

    def _fixed(self, _depth: int) -> tuple[Any, Write]:
        size = self.rng.randrange(1, 4)
        return self._keep({"type": "fixed", **self._name(), "size": size}, lambda: self.rng.randbytes(size))

    def _record(self, depth: int) -> tuple[Any, Write]:
        name = self._name()
        fields = [self.any(depth - 1) for _ in range(self.rng.randrange(3))]
        node = {"type": "record", **name, "fields": [{"name": f"f{at}", "type": each} for at, (each, _) in enumerate(fields)]}
        return self._keep(node, lambda: b"".join(write() for _, write in fields))

    def _array(self, depth: int) -> tuple[Any, Write]:
        items, write = self.any(depth - 1)
        return {"type": "array", "items": items}, lambda: self._block([write() for _ in range(self.rng.randrange(3))])

    def _map(self, depth: int) -> tuple[Any, Write]:
        values, write = self.any(depth - 1)
        keys = [sized(b"k"), sized(b"x")]
        return {"type": "map", "values": values}, lambda: self._block([key + write() for key in keys[: self.rng.randrange(3)]])

    @staticmethod
    def _block(items: list[bytes]) -> bytes:
        return long(len(items)) + b"".join(items) + b"\x00" if items else b"\x00"

    def _union(self, depth: int) -> tuple[Any, Write]:
        nested = ["record", "record", "array", "map"] if depth > 1 else []
        # One branch of each unnamed type.
        kinds = [*self._simple, "enum", "enum", "fixed", "fixed", *nested]
        branches = [self.of(kind, depth - 1) for kind in self.rng.sample(kinds, self.rng.randrange(1, 5))]
        if self.rng.random() < 0.5:
            branches.insert(0, ("null", lambda: b""))

        def write_branch() -> bytes:
            at = self.rng.randrange(len(branches))
            return long(at) + branches[at][1]()

        return [node for node, _ in branches], write_branch


def messages(registry: Registry, node: Any, payloads: list[bytes]) -> list[bytes]:
    prefix = b"\x00" + registry.register(f"s{hash(json.dumps(node))}", json.dumps(node)).to_bytes(4, "big")
    return [prefix + data for data in payloads]


@pytest.mark.parametrize("seed", [*range(16), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(16, 60))])
def test_random_unions_are_written_as_they_were_read(registry: Registry, seed: int) -> None:
    types = Types(seed)
    node, write = types.of(("record", "union", "array", "map")[seed % 4], 3)
    found = messages(registry, node, [write() for _ in range(8)])
    made = converter(registry)
    pairs = [made.decoder("t")(each) for each in found]
    for data, (schema, value) in zip(found, pairs, strict=True):
        if value is not None:
            assert made.from_connect_data(f"t{seed}", schema, value)[5:] == data[5:]  # type: ignore[index]
    decoded_alike(Tolerant(made), found)
    schema = pairs[0][0]
    assert schema is not None
    if made.column_encoder(f"t{seed}", schema) is not None:
        encoded_alike(made, schema, [value for _, value in pairs])
    made.close()


A = {"type": "record", "name": "A", "namespace": "x", "fields": [{"name": "s", "type": ["null", "string"]}]}
COLOR = {"type": "enum", "name": "Color", "namespace": "x", "symbols": ["RED", "BLUE"]}
MD5 = {"type": "fixed", "name": "Md5", "namespace": "x", "size": 2}
MAC = {"type": "fixed", "name": "Mac", "namespace": "x", "size": 2}
PRICE = {"type": "fixed", "name": "Price", "namespace": "x", "size": 2, "logicalType": "decimal", "precision": 4, "scale": 2}
A_DATA = long(1) + sized(b"y")


@pytest.mark.parametrize(
    ("node", "data", "field", "value"),
    [
        (["null", A, "string"], long(1) + A_DATA, "x.A", {"s": "y"}),
        (["null", A, "string"], long(2) + sized(b"RED"), "string", "RED"),
        ([COLOR, "string"], long(0) + long(1), "x.Color", "BLUE"),
        ([COLOR, "string"], long(1) + sized(b"BLUE"), "string", "BLUE"),
        ([MD5, "string"], long(0) + b"ab", "x.Md5", b"ab"),
        ([MD5, "bytes"], long(0) + b"ab", "x.Md5", b"ab"),
        ([MD5, MAC], long(1) + b"ab", "x.Mac", b"ab"),
        (["null", MD5, PRICE], long(2) + b"\x01\x02", "x.Price", Decimal("2.58")),
        ([PRICE, MD5, "bytes"], long(1) + b"\x01\x02", "x.Md5", b"\x01\x02"),
        ([MD5, "bytes"], long(1) + sized(b"ab"), "bytes", b"ab"),
        ([A, {"type": "map", "values": "string"}], long(0) + A_DATA, "x.A", {"s": "y"}),
        ([A, {"type": "map", "values": "string"}], long(1) + b"\x02" + sized(b"s") + sized(b"y") + b"\x00", "map", {"s": "y"}),
        (["int", "long"], long(1) + long(5), "long", 5),
        (["float", "double"], long(0) + struct.pack("<f", 1.5), "float", 1.5),
        (["string"], long(0) + sized(b"a"), "string", "a"),
        (["null", "int", "long"], long(2) + long(5), "long", 5),
    ],
    ids=str,
)
@pytest.mark.parametrize("wrap", ["alone", "field", "array", "map"])
def test_the_branch_is_in_the_data(registry: Registry, node: Any, data: bytes, field: str, value: Any, wrap: str) -> None:
    forms: dict[str, tuple[Any, bytes, Callable[[Any], Any]]] = {
        "alone": (node, data, lambda found: found),
        "field": (
            {"type": "record", "name": "R", "namespace": "x", "fields": [{"name": "u", "type": node}]},
            data,
            lambda found: found["u"],
        ),
        "array": ({"type": "array", "items": node}, b"\x04" + data + data + b"\x00", lambda found: found[1]),
        "map": ({"type": "map", "values": node}, b"\x02" + sized(b"k") + data + b"\x00", lambda found: found["k"]),
    }
    whole, payload, inner = forms[wrap]
    made = converter(registry)
    [message] = messages(registry, whole, [payload])
    schema, found = made.decoder("t")(message)
    assert {
        name: dict(each) if isinstance(each, Struct) else each for name, each in inner(found).items() if each is not None
    } == {field: value}
    for _ in range(2):  # the first record is written by another serializer than the later ones
        assert made.from_connect_data(f"t{wrap}", schema, found)[5:] == payload  # type: ignore[index]
    made.close()


@pytest.mark.parametrize("key", [{"use.latest.version": "true"}, {"use.schema.id": "id"}])
def test_the_branch_is_written_with_a_schema_of_the_registry(registry: Registry, key: dict[str, str]) -> None:
    node = {"type": "record", "name": "L", "namespace": "x", "fields": [{"name": "u", "type": ["long", COLOR, "int", "string"]}]}
    number = registry.register("latest-value", json.dumps(node))
    own = Schema.struct({"u": converter_schema(registry, ["int", "long", "string", COLOR])}, name="x.L")
    made = converter(registry, **{"auto.register.schemas": "false", **{k: v.replace("id", str(number)) for k, v in key.items()}})
    for branch, value, wanted in (
        ("int", 5, long(2) + long(5)),
        ("x.Color", "RED", long(1) + long(0)),
        ("long", 5, long(0) + long(5)),
    ):
        union = Struct(own.fields[0].schema, {branch: value})
        assert made.from_connect_data("latest", own, Struct(own, {"u": union}))[5:] == wanted  # type: ignore[index]
    made.close()


def converter_schema(registry: Registry, node: Any) -> Schema:
    """Return the Connect schema of an Avro schema."""
    wrapped = {"type": "record", "name": "W", "namespace": "x", "fields": [{"name": "u", "type": node}]}
    [message] = messages(registry, wrapped, [long(0) + long(1)])
    schema = converter(registry).decoder("t")(message)[0]
    assert schema is not None
    return schema.fields[0].schema


def test_a_branch_that_is_not_in_the_union_is_an_error(registry: Registry) -> None:
    for node, data in ((["string"], long(1)), (["int", "string"], long(2)), (["null", A, "string"], long(7))):
        [message] = messages(registry, node, [data])
        with pytest.raises(DataError, match="the bytes do not match the schema"):
            converter(registry).decoder("t")(message)
