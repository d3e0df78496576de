"""Gives fastavro schemas in which each branch of a union is a record, so that the branch is in the data. No I/O.

fastavro says which branch it has read, and takes the branch to write, only for records. Avro's encoding of a record is that of
its fields in a row, so a record around a branch changes no byte. Unions of null and one type stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sluiceway.converters.registry.avro_parse import without_outside
from sluiceway.data.avro_schema import VALUE

_NULL = "null"
_ROOT = "__sluiceway_value"
_UNUSED: dict[str, Any] = {"type": "record", "name": "", "fields": []}


def parsed_with_branches(node: Any, references: Iterable[Any] = ()) -> Any:
    """Return fastavro's form of a record whose only field is a value of the schema: ``{"value": ...}``.

    The value of a branch is the pair of ``branch_tag`` and a record of the same form, when it is read with
    ``return_named_type`` and ``return_named_type_override`` as when it is written. ``references`` are parsed before.
    """
    import fastavro

    named: dict[str, Any] = {}
    for reference in references:
        fastavro.parse_schema(reference, named)
    root = {"type": "record", "name": _ROOT, "fields": [{"name": VALUE, "type": node}]}  # in no namespace, as the schema is
    parsed = fastavro.parse_schema(root, named)
    seen: set[int] = set()
    for schema in [parsed, *named.values()]:
        _name_branches(schema, seen)
    return parsed


def branch_tag(kind: str, name: str | None) -> str:
    """Return the name of the record around a branch: the full name of a named type, else its kind. A union has each once."""
    return without_outside(name or kind)


def untagged(datum: Any) -> Any:
    """Return a datum as fastavro takes it for the schema itself, where it guesses branches that are no records."""
    if isinstance(datum, tuple):
        tag, value = datum[0], untagged(datum[1][VALUE])
        return (tag, value) if isinstance(value, dict) and tag != "map" else value
    if isinstance(datum, dict):
        return {name: untagged(value) for name, value in datum.items()}
    return [untagged(item) for item in datum] if isinstance(datum, list) else datum


def _name_branches(schema: Any, seen: set[int]) -> Any:
    """Return a parsed schema with records around the branches of its unions; schemas within it are changed."""
    if isinstance(schema, list):
        return _union([_name_branches(branch, seen) for branch in schema])
    if not isinstance(schema, dict) or id(schema) in seen:
        return schema
    seen.add(id(schema))
    for part in ("items", "values"):
        if part in schema:
            schema[part] = _name_branches(schema[part], seen)
    for field in schema.get("fields", ()):
        if id(field) not in seen:  # copies of a named schema have the same fields
            seen.add(id(field))
            field["type"] = _name_branches(field["type"], seen)
    return schema


def _union(branches: list[Any]) -> list[Any]:
    others = [branch for branch in branches if _kind(branch) != _NULL]
    if len(branches) == 2 and len(others) == 1:
        return branches
    # fastavro leaves the name of a record out that is alone in its union.
    return [_named(branch) for branch in branches] + ([_UNUSED] if len(others) == 1 else [])


def _named(branch: Any) -> Any:
    kind = _kind(branch)
    if kind == _NULL:
        return branch
    name = branch.get("name") if isinstance(branch, dict) else None
    return {"type": "record", "name": branch_tag(kind, name), "fields": [{"name": VALUE, "type": branch}]}


def _kind(branch: Any) -> str:
    return str(branch["type"]) if isinstance(branch, dict) else str(branch)
