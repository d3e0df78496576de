"""Calls a search server over HTTP for the sources: indexes, points in time, and pages of documents."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple
from urllib.parse import quote

import httpx

from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.search.client import FORBIDDEN, RefusedError, SearchClient
from sluiceway.connectors.search.connection import Server

_OF_INDEXES = (
    "aliases",
    "data_stream",
    "settings.index.uuid",
    "settings.index.number_of_shards",
    "settings.index.refresh_interval",
)
_OF_SHARDS = ("uuid", "shards.*.routing.primary", "shards.*.seq_no.global_checkpoint")
_OF_PAGES = "filter_path=pit_id,_shards.total,hits.hits"
_CLOSING_SECONDS = 2.0  # to close a point in time, which its keep-alive ends anyway


class Page(NamedTuple):
    """The documents of a search, and the id by which the point in time is known from now on."""

    hits: list[dict[str, Any]]
    view: str


class Checkpoints(NamedTuple):
    """Of an index, its UUID and, by shard, the number up to which all copies have all writes."""

    uuid: str
    numbers: Mapping[int, int]


class SourceClient(SearchClient):
    """A client that reads. ``opensearch`` is whether the server is taken for OpenSearch if it does not tell."""

    rights: ClassVar[str] = "the rights to read the indexes, their settings and statistics (monitor), and to refresh them"

    def __init__(self, server: Server, *, opensearch: bool) -> None:
        super().__init__(server)
        if not server.compressed:  # the server would spend more time on compressing a page than on reading it
            self._http.headers["Accept-Encoding"] = "identity"
        self._opensearch = opensearch
        self._known = False

    def indexes(self, patterns: Sequence[str]) -> dict[str, Any]:
        """Return the open indexes, by name, that names, wildcards, aliases and data streams stand for."""
        names = ",".join(quote(each, safe="*") for each in patterns)
        fields = ",".join(f"*.{each}" for each in _OF_INDEXES)
        return self._json(
            "GET", f"/{names}?expand_wildcards=open&ignore_unavailable=true&allow_no_indices=true&filter_path={fields}"
        )

    def field_types(self, index: str, field: str) -> dict[str, set[str]]:
        """Return the types of a field and of the objects that it is in; nothing for what the index does not define."""
        parts = field.split(".")
        paths = [".".join(parts[:count]) for count in range(1, len(parts) + 1)]
        found = self._json("GET", f"/{quote(index, safe='')}/_field_caps?fields={quote(','.join(paths), safe=',')}")
        return {path: set(types) for path, types in found.get("fields", {}).items()}

    def has_documents(self, index: str) -> bool:
        found = self._json("GET", f"/{quote(index, safe='')}/_count?terminate_after=1")
        return bool(found["count"])

    def checkpoints(self, index: str) -> Checkpoints | None:
        """Return how far an index is written on all copies of its shards; None if there is no such index."""
        fields = ",".join(f"indices.*.{each}" for each in _OF_SHARDS)
        found = self._json("GET", f"/{quote(index, safe='')}/_stats/docs?level=shards&filter_path={fields}").get("indices", {})
        if index not in found:
            return None
        numbers = {}
        for number, copies in found[index].get("shards", {}).items():
            for copy in copies:
                if copy["routing"]["primary"]:
                    numbers[int(number)] = int(copy["seq_no"]["global_checkpoint"])
        return Checkpoints(str(found[index]["uuid"]), numbers)

    def refresh(self, index: str) -> None:
        """Make all that is written visible. Raises UnreachableError if a copy of a shard could not do it."""
        found = self._json("POST", f"/{quote(index, safe='')}/_refresh")
        if found["_shards"].get("failed"):
            raise UnreachableError(f"{self._urls[0]} could not refresh all copies of {index}.")

    def open_view(self, index: str, shard: int, keep_alive: int) -> str:
        """Open a point in time of one shard for ``keep_alive`` milliseconds, and return its id."""
        options = f"keep_alive={keep_alive}ms&preference="
        if self._is_opensearch():
            # The primary: with segment replication, the other copies are behind it.
            path = f"_search/point_in_time?allow_partial_pit_creation=false&{options}" + quote(f"_shards:{shard}|_primary")
        else:
            path = f"_pit?{options}" + quote(f"_shards:{shard}")
        found = self._json("POST", f"/{quote(index, safe='')}/{path}")
        return str(found["pit_id"] if "pit_id" in found else found["id"])

    def close_view(self, view: str) -> None:
        """Close a point in time if that is quickly done."""
        path, body = ("/_search/point_in_time", {"pit_id": [view]}) if self._is_opensearch() else ("/_pit", {"id": view})
        with contextlib.suppress(UnreachableError, RefusedError):
            self._json("DELETE", path, body, timeout=httpx.Timeout(_CLOSING_SECONDS))

    def page(self, view: str, body: Mapping[str, Any]) -> Page:
        """Search a point in time of one shard."""
        found = self._json("POST", f"/_search?allow_partial_search_results=false&{_OF_PAGES}", body)
        if found.get("_shards", {}).get("total") != 1:
            text = f"{self._urls[0]} searched {found.get('_shards')} instead of one shard, so that documents could be missed."
            raise RefusedError(httpx.codes.OK, text)
        return Page(found.get("hits", {}).get("hits", []), str(found.get("pit_id", view)))

    def _is_opensearch(self) -> bool:
        if not self._known:
            try:
                version = self.about().get("version", {})
                self._opensearch = version.get("distribution") == "opensearch"
            except RefusedError as error:
                if error.status != FORBIDDEN:
                    raise
            self._known = True
        return self._opensearch
