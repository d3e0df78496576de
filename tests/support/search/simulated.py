"""Simulates one shard of a search index: writes in flight, refreshes, points in time, and searches. No I/O."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, NamedTuple

from sluiceway.connectors.search.client import RefusedError
from sluiceway.connectors.search.source.client import Checkpoints, Page

UUID = "u"


class Doc(NamedTuple):
    id: str
    value: int
    number: int


class SimulatedShard:
    """A shard with the methods of ``SourceClient`` that its reader calls."""

    def __init__(self, kind: str = "long") -> None:
        self.kind = kind
        self.next_number = 0
        self.flying: dict[int, Doc] = {}
        self.written: dict[str, Doc] = {}
        self.visible: dict[str, Doc] = {}
        self.views: dict[str, list[Doc]] = {}
        self.opened = 0
        self.searches: list[Mapping[str, Any]] = []

    def begin(self, id_: str, value: int) -> int:
        """Begin to write a document: it has its number, and is in no search yet."""
        number, self.next_number = self.next_number, self.next_number + 1
        self.flying[number] = Doc(id_, value, number)
        return number

    def finish(self, number: int) -> None:
        doc = self.flying.pop(number)
        if doc.id not in self.written or self.written[doc.id].number < number:
            self.written[doc.id] = doc

    def write(self, id_: str, value: int) -> None:
        self.finish(self.begin(id_, value))

    def delete(self, id_: str) -> None:
        self.next_number += 1
        self.written.pop(id_, None)

    def expire(self) -> None:
        self.views.clear()

    def checkpoints(self, _index: str) -> Checkpoints:
        return Checkpoints(UUID, {0: min(self.flying, default=self.next_number) - 1})

    def refresh(self, _index: str) -> None:
        self.visible = dict(self.written)

    def field_types(self, _index: str, field: str) -> dict[str, set[str]]:
        return {field: {self.kind}}

    def has_documents(self, _index: str) -> bool:
        return bool(self.visible)

    def open_view(self, _index: str, _shard: int, _keep_alive: int) -> str:
        self.opened += 1
        self.views[str(self.opened)] = list(self.visible.values())
        return str(self.opened)

    def close_view(self, view: str) -> None:
        self.views.pop(view, None)

    def page(self, view: str, body: Mapping[str, Any]) -> Page:
        self.searches.append(body)
        if view not in self.views:
            raise RefusedError(404, "No search context found", "search_context_missing_exception")
        names = [name for each in body["sort"] for name in each]
        rows = sorted((_sort_of(doc, names), doc) for doc in self.views[view])
        conditions = body.get("query", {}).get("bool", {}).get("filter", [])
        after = body.get("search_after")
        found = [
            {"_id": doc.id, "_source": {"value": doc.value}, "sort": sort}
            for sort, doc in rows
            if all(_matches(doc, each) for each in conditions) and (after is None or sort > after)
        ]
        return Page(found[: body["size"]], view)


def _sort_of(doc: Doc, names: list[str]) -> list[int]:
    return [doc.number if name == "_seq_no" else doc.value for name in names]


def _matches(doc: Doc, condition: Mapping[str, Any]) -> bool:
    if "exists" in condition:
        return True
    ((field, limits),) = condition["range"].items()
    value = doc.number if field == "_seq_no" else doc.value
    if "format" in limits:
        limits = {name: _millis(limit) for name, limit in limits.items() if name != "format"}
    tests = {"gte": value.__ge__, "lte": value.__le__, "lt": value.__lt__}
    return all(tests[name](limit) for name, limit in limits.items())


def _millis(text: str) -> int:
    return round(dt.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp() * 1000)
