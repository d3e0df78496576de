"""Makes rows with nested values flat rows of several tables, as dlt's destinations have them. No I/O. In the reader's process.

The fields of an object become fields NAME__FIELD. The elements of a list become rows of the table TABLE__FIELD, with the id of
their parent and their index. An id is made from the primary key, or from the whole row without one, so that a row which is read
again has the same id. dlt's own are random unless the resource is merged.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sluiceway.connectors.dlt.kinds import json_text

ID, PARENT, INDEX = "_dlt_id", "_dlt_parent_id", "_dlt_list_idx"
CHILD_KEYS = [PARENT, INDEX]


def has_nested(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether any row has an object or a list."""
    return any(isinstance(value, (dict, list, tuple)) for row in rows for value in row.values())


def flat_tables(table: str, rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of a table and of the tables below it, by table, the parents first."""
    tables: dict[str, list[dict[str, Any]]] = {table: []}
    for row in rows:
        identity = [row.get(key) for key in keys] if keys else row
        _add(tables, table, row, {ID: _digest(table, json_text(identity))})
    return tables


def _add(tables: dict[str, list[dict[str, Any]]], table: str, row: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    flat: dict[str, Any] = {}
    lists: list[tuple[str, Sequence[Any]]] = []
    _flatten(row, "", flat, lists)
    tables.setdefault(table, []).append({**flat, **own})
    for name, elements in lists:
        child = f"{table}__{name}"
        for index, element in enumerate(elements):
            value = element if isinstance(element, dict) else {"value": element}
            links = {PARENT: own[ID], INDEX: index}
            _add(tables, child, value, {**links, ID: _digest(child, f"{own[ID]} {index}")})


def _flatten(row: Mapping[str, Any], prefix: str, flat: dict[str, Any], lists: list[tuple[str, Sequence[Any]]]) -> None:
    for name, value in row.items():
        if isinstance(value, dict):
            _flatten(value, f"{prefix}{name}__", flat, lists)
        elif isinstance(value, (list, tuple)):
            lists.append((f"{prefix}{name}", value))
        else:
            flat[f"{prefix}{name}"] = value


def _digest(table: str, text: str) -> str:
    return base64.b64encode(hashlib.blake2b(f"{table} {text}".encode(), digest_size=15).digest()).decode()
