"""Selects streams and fields in a tap's catalog, by the rules of Meltano's ``select`` and ``metadata``. No I/O."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from sluiceway.errors import ConnectError

Catalog = dict[str, Any]

_EVERYTHING = ("*.*",)
_DOT = re.compile(r"(?<!\\)\.")


@dataclass(frozen=True, slots=True)
class Selection:
    """Rules such as ``orders.*``, ``orders.id``, and ``!orders.secret``, and metadata by stream.

    A stream is selected if a rule names it and none that begins with ``!`` takes all of it. ``*`` and ``?`` stand for other
    characters, and a ``.`` that belongs to a stream's name follows a backslash.
    """

    rules: Sequence[str] = ()
    metadata: Mapping[str, Mapping[str, Any]] | None = None

    def apply(self, catalog: Any, *, old_form: bool = False) -> Catalog:
        """Return a catalog with the selection; ``old_form`` also marks schemas, as taps with ``--properties`` want it.

        Raises ConnectError for what is no catalog, and if no stream is selected.
        """
        streams = catalog.get("streams") if isinstance(catalog, dict) else None
        if not isinstance(streams, list) or not all(isinstance(each, dict) for each in streams):
            raise ConnectError('The catalog is not of the form {"streams": [...]}.')
        made: Catalog = copy.deepcopy(catalog)
        chosen = [_select(stream, self, old_form=old_form) for stream in made["streams"]]
        if not any(chosen):
            names = ", ".join(sorted(map(stream_name, streams))[:20]) or "none"
            raise ConnectError(f"singer.select={','.join(self.rules)} selects no stream. The tap has these: {names}.")
        return made

    def has(self, stream: str) -> bool:
        included = any(_matches(rule, stream) for rule, _ in self._parts(excluding=False))
        return included and not any(_matches(rule, stream) and field == "*" for rule, field in self._parts(excluding=True))

    def has_field(self, stream: str, field: str) -> bool:
        def found(*, excluding: bool) -> bool:
            return any(_matches(rule, stream) and _matches(part, field) for rule, part in self._parts(excluding=excluding))

        return found(excluding=False) and not found(excluding=True)

    def _parts(self, *, excluding: bool) -> Iterator[tuple[str, str]]:
        for rule in self.rules or _EVERYTHING:
            if rule.startswith("!") == excluding:
                stream, _, field = _split(rule.removeprefix("!"))
                yield stream, field or "*"

    def of_stream(self, stream: str) -> dict[str, Any]:
        """Return the metadata of a stream; what is said of it by its name counts more than what is said by a pattern."""
        found: dict[str, Any] = {}
        for pattern, values in sorted((self.metadata or {}).items(), key=lambda item: item[0] == stream):
            if fnmatchcase(stream, pattern):
                found.update(values)
        return found


def stream_name(stream: Mapping[str, Any]) -> str:
    """Return the name by which a catalog's stream is selected."""
    return str(stream.get("tap_stream_id") or stream.get("stream") or "")


def _split(rule: str) -> tuple[str, str, str]:
    parts = _DOT.split(rule, maxsplit=1)
    return (parts[0].replace("\\.", "."), ".", parts[1]) if len(parts) > 1 else (parts[0].replace("\\.", "."), "", "")


def _matches(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern)


def _select(stream: dict[str, Any], selection: Selection, *, old_form: bool) -> bool:
    """Write the selection into a stream, and return whether it is selected."""
    name = stream_name(stream)
    entries = stream.get("metadata")
    metadata: list[dict[str, Any]] = entries if isinstance(entries, list) else []
    stream["metadata"] = metadata
    by_path = {tuple(each.get("breadcrumb") or ()): each.setdefault("metadata", {}) for each in metadata}

    def of(path: tuple[str, ...]) -> dict[str, Any]:
        if path not in by_path:
            by_path[path] = {}
            metadata.append({"breadcrumb": list(path), "metadata": by_path[path]})
        found: dict[str, Any] = by_path[path]
        return found

    root = of(())
    chosen = selection.has(name) and root.get("inclusion") != "unsupported"
    root["selected"] = stream["selected"] = chosen
    own = selection.of_stream(name)
    root.update(own)
    for key in ("replication-method", "replication-key"):
        if key in own:
            stream[key.replace("-", "_")] = own[key]
    schema = stream.get("schema")
    if isinstance(schema, dict):
        if old_form:
            schema["selected"] = chosen
        needed = {*_listed(stream.get("key_properties")), *_listed(root.get("table-key-properties")), root.get("replication-key")}
        for path, part in _properties(schema):
            about, field = of(path), ".".join(path[1::2])
            automatic = about.get("inclusion") == "automatic" or field in needed
            about["selected"] = chosen and (
                automatic or (about.get("inclusion") != "unsupported" and selection.has_field(name, field))
            )
            if old_form and isinstance(part, dict):
                part["selected"] = about["selected"]
    return chosen


def _listed(value: Any) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _properties(schema: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the properties of a schema, and those within them, with their paths in the catalog's form."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return
    for name, part in properties.items():
        place = (*path, "properties", str(name))
        yield place, part
        if isinstance(part, dict):
            yield from _properties(part, place)
