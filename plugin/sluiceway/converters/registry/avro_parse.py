"""Gives fastavro schemas that it can parse: without logical types, and with names that it finds. No I/O.

A reference to a type without a namespace from within a namespace is written as its bare name, by Java and here. Java looks it up
in the namespace first, and then outside of all; fastavro looks in the namespace only. No byte of data depends on names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from typing import Any, NamedTuple

from sluiceway.data.avro_schema import full_name

_OUTSIDE = "sluiceway.outside"
"""The namespace that types without one get where fastavro would not find them."""

DEFINITIONS = ("record", "error", "enum", "fixed")
"""The kinds of types that have a name."""

_PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class _Use(NamedTuple):
    """A name in a schema: that of a definition, in full, or that of a reference in a namespace."""

    name: str
    namespace: str
    is_definition: bool = False


def parseable(*schemas: Any) -> list[Any]:
    """Return schemas that refer to each other as fastavro can parse them, in the same order."""
    plain = [_without_logical_types(each) for each in schemas]
    if not hidden_from_fastavro(*plain):
        return plain
    defined = _defined(plain)
    return [_in_full(each, "", defined) for each in plain]


def hidden_from_fastavro(*schemas: Any) -> str | None:
    """Return a type without a namespace that is referred to from within one, None if there is none."""
    defined = _defined(schemas)
    bare = (use for each in schemas for use in _uses(each, "") if use.namespace and "." not in use.name)
    return next((use.name for use in bare if _resolved(use.name, use.namespace, defined) == use.name), None)


def _defined(schemas: Iterable[Any]) -> Set[str]:
    """Return the full names of the types that schemas define."""
    return {use.name for each in schemas for use in _uses(each, "") if use.is_definition}


def without_outside(name: str) -> str:
    """Return the name that a type has in its own schema."""
    return name.removeprefix(f"{_OUTSIDE}.")


def _without_logical_types(node: Any) -> Any:
    """Return the schema without logical types: this package converts them itself, exactly, instead of fastavro."""
    if isinstance(node, list):
        return [_without_logical_types(part) for part in node]
    if isinstance(node, dict):
        return {key: _without_logical_types(part) for key, part in node.items() if key != "logicalType"}
    return node


def _uses(node: Any, namespace: str) -> Iterator[_Use]:
    if isinstance(node, list):
        for branch in node:
            yield from _uses(branch, namespace)
    elif isinstance(node, str):
        if node not in _PRIMITIVES:
            yield _Use(node, namespace)
    elif not isinstance(node, dict):
        return  # fastavro refuses it
    elif node.get("type") in DEFINITIONS:
        name = full_name(node, namespace)
        yield _Use(name, "", is_definition=True)
        for field in node.get("fields", ()):
            yield from _uses(field["type"], name.rpartition(".")[0])
    else:
        yield from _uses(node.get("items", node.get("values", node.get("type"))), namespace)


def _resolved(name: str, namespace: str, defined: Set[str]) -> str:
    """Return the full name that a reference means: that in its namespace, or else one without a namespace."""
    inside = name if "." in name or not namespace else f"{namespace}.{name}"
    return inside if inside in defined or name not in defined else name


def _in_full(node: Any, namespace: str, defined: Set[str]) -> Any:
    """Return a schema in which each name is written in full, with a namespace."""

    def placed(name: str) -> str:
        return name if "." in name else f"{_OUTSIDE}.{name}"

    if isinstance(node, list):
        return [_in_full(branch, namespace, defined) for branch in node]
    if isinstance(node, str):
        return node if node in _PRIMITIVES else placed(_resolved(node, namespace, defined))
    if node.get("type") in DEFINITIONS:
        name = full_name(node, namespace)
        found = {key: part for key, part in node.items() if key != "namespace"} | {"name": placed(name)}
        if "fields" in node:
            inner = name.rpartition(".")[0]
            found["fields"] = [field | {"type": _in_full(field["type"], inner, defined)} for field in node["fields"]]
        return found
    part = next(key for key in ("items", "values", "type") if key in node)
    return node | {part: _in_full(node[part], namespace, defined)}
