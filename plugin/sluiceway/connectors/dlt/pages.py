"""Reads the resources of a source, and decides which pages the state of a resource covers. Runs in the reader's process.

dlt updates the state of a resource before it hands over a page: its ``last_value`` is the highest cursor of the pages so far.
So the state covers exactly the rows that were handed over if they come in the cursor's order, and nothing is read ahead or
derived from them. Only then the state after a page is the offset of its last row. The state of any other resource is stored
when the run has ended.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
from dlt.extract import DltResource, DltSource

from sluiceway.connectors.dlt import config as keys
from sluiceway.connectors.dlt import internals
from sluiceway.connectors.dlt.config import DltConfig
from sluiceway.connectors.dlt.kinds import json_text
from sluiceway.connectors.dlt.tables import Table
from sluiceway.errors import ConnectError, DataError

log = logging.getLogger(__name__)

STATE, SCHEMA = "state", "schema"
_SINGLE_ROWS = 1000
_SINGLE_SECONDS = 0.5
_MOST_BYTES = 900_000  # of an offset: a record of Kafka has 1 MiB by default, with its key and its headers
_NO_TABLE = "skip"

Offset = Mapping[str, Any]
ID, PARENT, INDEX = "_dlt_id", "_dlt_parent_id", "_dlt_list_idx"
CHILD_KEYS = [PARENT, INDEX]


class Output(Protocol):
    """Takes the pages of a run."""

    def table(self, table: Table) -> None:
        """Take the schema of a table, before its first rows and when it has grown."""

    def rows(self, table: Table, rows: pa.RecordBatch, resource: str, offset: Offset | None, *, covered: bool) -> None:
        """Take rows. ``offset`` covers them; ``covered`` is whether offsets cover everything so far."""

    def offsets(self, offsets: Mapping[str, Offset | None]) -> None:
        """Take offsets by resource that no row has; None removes one."""


class _Single(NamedTuple):
    """Rows that a resource has yielded one by one."""

    tables: dict[str, list[dict[str, Any]]]
    since: float


def covers_pages(resource: DltResource, parents: set[str], commit: str) -> bool:
    """Return whether the state after a page covers the rows of this resource up to its end, and nothing else."""
    incremental = internals.incremental_of(resource)
    if commit == keys.RUN or incremental is None or resource.is_transformer or resource.name in parents:
        return False
    if incremental.last_value_func is not max or incremental.range_start != "closed":
        return False  # with an open range, other rows with the last cursor of a page would not be read again
    return incremental.row_order == "asc" or (commit == keys.PAGE and incremental.row_order is None)


class SourceReader:
    """Reads the selected resources of a source once. Not thread-safe, but for the thread that it starts."""

    def __init__(self, source: DltSource, config: DltConfig, offsets: Mapping[str, Offset | None], output: Output) -> None:
        """Take the stored offsets, by resource; that of the source itself has an empty name. Raises ConnectError."""
        self._source = source
        self._config = config
        self._output = output
        self._before = dict(offsets)
        self._section: dict[str, Any] = {}
        self._state = {"sources": {source.name: self._section}}
        self._tables: dict[str, Table] = {}
        self._of_resource: dict[str, set[str]] = {}
        self._sent: dict[str, Any] = {}  # the schema of each table that the output has
        self._columns: dict[str, tuple[list[Any], str]] = {}
        self._hinted: set[str] = set()
        self._single: dict[str, _Single] = {}
        self._uncovered: set[str] = set()  # resources with rows that no offset covers
        self._highest: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._failure: Exception | None = None
        for resource, offset in offsets.items():
            if offset:
                self._restore(resource, offset)
        self._parents = internals.read_by_transformers(source)
        self._by_page: dict[str, bool] = {}

    def read(self) -> dict[str, Offset]:
        """Read all, and return the offsets after it that are new. Raises what the source raises."""
        done = threading.Event()
        timer = threading.Thread(target=self._hand_over_slow_rows, args=(done,), name="slow-rows", daemon=True)
        timer.start()
        try:
            for page in internals.pages(self._source, self._state):
                with self._lock:
                    self._raise_failure()
                    self._take(page)
        finally:
            done.set()
            timer.join()
        self._raise_failure()
        for name in list(self._single):
            self._flush(self._source.resources[name], None)
        return {name: offset for name in self._named() if (offset := self._offset(name)) != self._before.get(name)}

    # Pages.

    def _take(self, page: internals.Page) -> None:
        resource, items = page.resource, page.items
        if internals.is_file(page.meta):
            raise DataError(f"Resource {resource.name} yields a file for a destination to import, which is no rows.")
        table = internals.table_of_meta(resource, page.meta)
        if internals.brings_hints(page.meta):
            self._hinted.clear()
        if items is None or internals.is_schema_only(items) or resource.write_disposition == _NO_TABLE:
            return
        if not isinstance(items, list):
            self._take_single(page, table)
        elif items:
            self._flush(resource, None)
            self._hand_over(resource, self._by_table(resource, items, table), None if page.ahead else resource.name)

    def _take_single(self, page: internals.Page, table: str | None) -> None:
        """Collect a row that came alone, because a batch of one row costs as much as one of hundreds."""
        resource = page.resource
        if _is_frame(page.items):
            self._flush(resource, None)
            self._hand_over(resource, self._by_table(resource, [page.items], table), None if page.ahead else resource.name)
            return
        single = self._single.setdefault(resource.name, _Single({}, time.monotonic()))
        single.tables.setdefault(table or self._table_of(resource, page.items), []).append(_row(resource, page.items))
        count = sum(map(len, single.tables.values()))
        if count >= _SINGLE_ROWS or time.monotonic() - single.since > _SINGLE_SECONDS:
            self._flush(resource, None if page.ahead else resource.name)

    def _flush(self, resource: DltResource, covered: str | None) -> None:
        """Hand over rows that came alone. ``covered`` is the resource's name if its state covers them and nothing else."""
        single = self._single.pop(resource.name, None)
        if single is not None:
            self._hand_over(resource, list(single.tables.items()), covered)

    def _hand_over_slow_rows(self, done: threading.Event) -> None:
        """Hand over single rows after a while, also if the next one is long in coming. Runs on a thread of its own.

        The source may be changing its state meanwhile, so that these rows have no offset. That of the next rows covers them.
        """
        while not done.wait(_SINGLE_SECONDS):
            try:
                with self._lock:
                    old = [name for name, each in self._single.items() if time.monotonic() - each.since > _SINGLE_SECONDS]
                    for name in old:
                        self._flush(self._source.resources[name], None)
            except Exception as error:  # noqa: BLE001 (read() raises it)
                self._failure = error
                return

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _by_table(self, resource: DltResource, items: list[Any], named: str | None) -> list[tuple[str, Any]]:
        """Return the rows of a page by table: lists of rows, and Arrow tables."""
        if _is_frame(items[0]):
            return [(named or self._table_of(resource, each), _arrow(resource, each)) for each in items]
        rows = [each if type(each) is dict else _row(resource, each) for each in items]
        if named is not None or not resource.has_dynamic_table_name:
            return [(named or str(resource.table_name), rows)]
        tables: dict[str, list[Any]] = {}
        for row in rows:
            tables.setdefault(self._table_of(resource, row), []).append(row)
        return list(tables.items())

    @staticmethod
    def _table_of(resource: DltResource, item: Any) -> str:
        name = resource.table_name
        return str(name(item) if callable(name) else name)

    def _hand_over(self, resource: DltResource, parts: Sequence[tuple[str, Any]], covered: str | None) -> None:
        name = resource.name
        if self._is_by_page(resource) and not self._ascends(resource, parts):
            self._revoke(name)
        made = [each for table, rows in parts for each in self._batches(resource, table, rows)]
        by_page = covered is not None and self._by_page[name]
        if not by_page:
            self._uncovered.add(name)
        for number, (table, batch) in enumerate(made, 1):
            if self._sent.get(table.name) is not table.schema:
                self._output.table(table)
                self._sent[table.name] = table.schema
            last = by_page and number == len(made)
            if last:
                self._uncovered.discard(name)
            offset = self._offset(name) if last else None
            self._output.rows(table, batch, name, offset, covered=last and not self._uncovered)

    def _batches(self, resource: DltResource, table: str, rows: Any) -> Iterator[tuple[Table, pa.RecordBatch]]:
        made = self._table(resource, table, rows)
        if isinstance(rows, pa.Table):
            nested = self._config.nested == keys.TOPICS and any(pa.types.is_nested(each) for each in rows.schema.types)
            if not nested:
                if len(rows):
                    yield made, made.of_arrow(rows)
                return
            rows = rows.to_pylist()
        if self._config.nested != keys.TOPICS or not has_nested(rows):
            yield made, made.of_rows(rows)
            return
        for name, flat in flat_tables(table, rows, made.keys).items():
            child = made if name == table else self._child(resource, name)
            yield child, child.of_rows(flat)

    # Tables.

    def _table(self, resource: DltResource, name: str, rows: Any) -> Table:
        table = self._known_table(resource.name, name)
        if name not in self._hinted:
            self._hinted.add(name)
            first = rows if isinstance(rows, pa.Table) else rows[0]
            table.declare(resource.compute_table_schema(first).get("columns") or {})
        return table

    def _child(self, resource: DltResource, name: str) -> Table:
        table = self._known_table(resource.name, name)
        table.keys = CHILD_KEYS
        return table

    def _known_table(self, resource: str, name: str) -> Table:
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._new_table(name, {})
        self._of_resource.setdefault(resource, set()).add(name)
        return table

    def _new_table(self, name: str, columns: Mapping[str, Any]) -> Table:
        return Table(name, columns, structs=self._config.nested == keys.STRUCT, micros=self._config.micros)

    # State.

    def _restore(self, resource: str, offset: Offset) -> None:
        try:
            state = internals.state_from_text(str(offset.get(STATE, "{}")))
            schema = json.loads(str(offset.get(SCHEMA, "{}")))
            if not isinstance(state, dict) or not isinstance(schema, dict):
                raise ValueError("it is no JSON object")
        except ValueError as error:
            raise ConnectError(
                f"The stored offset of resource {resource or 'of the source itself'} cannot be read: {error}"
            ) from error
        if resource:
            self._section.setdefault("resources", {})[resource] = state
        else:
            self._section.update(state)
        for name, columns in schema.items():
            self._tables[name] = self._new_table(name, columns)
            self._of_resource.setdefault(resource, set()).add(name)

    def _named(self) -> list[str]:
        """Return the resources that have a state or tables, and at the end the source itself if it has a state of its own."""
        own = any(name != "resources" for name in self._section)
        names = dict.fromkeys([*self._source.resources.selected, *self._section.get("resources", {})])
        return [*names, *([""] if own else [])]

    def _offset(self, resource: str) -> dict[str, Any]:
        """Return the offset of a resource by the state now. Raises DataError for one that Kafka would not take."""
        if resource:
            state = self._section.get("resources", {}).get(resource, {})
        else:
            state = {name: each for name, each in self._section.items() if name != "resources"}
        text = internals.state_to_text(state)
        if len(text) > _MOST_BYTES:
            raise DataError(_too_large(resource, len(text)))
        return {STATE: text, SCHEMA: self._schema_text(resource)}

    def _schema_text(self, resource: str) -> str:
        tables = [self._tables[name] for name in sorted(self._of_resource.get(resource, ()))]
        schemas = [table.schema for table in tables]
        known = self._columns.get(resource)
        if known is None or len(known[0]) != len(schemas) or any(a is not b for a, b in zip(known[0], schemas, strict=True)):
            known = self._columns[resource] = schemas, json.dumps({table.name: table.stored() for table in tables})
        return known[1]

    # The order of rows.

    def _is_by_page(self, resource: DltResource) -> bool:
        """Return whether the state is stored after each page. Asked with a page: before, dlt may not know the cursor yet."""
        found = self._by_page.get(resource.name)
        if found is None:
            found = self._by_page[resource.name] = covers_pages(resource, self._parents, self._config.commit)
            when = "after each page" if found else "at the end of each run"
            log.info("Resource %s of source %s: its state is stored %s", resource.name, self._source.name, when)
        return found

    def _ascends(self, resource: DltResource, parts: Sequence[tuple[str, Any]]) -> bool:
        """Return whether a page has no cursor below those of the pages before it."""
        path = str(internals.incremental_of(resource).cursor_path)
        try:
            lowest, highest = _bounds(path, [rows for _, rows in parts])
            before = self._highest.get(resource.name)
            if lowest is None:
                return True
            self._highest[resource.name] = highest if before is None else max(before, highest)
            return bool(before is None or lowest >= before)
        except TypeError:  # values that cannot be compared
            return True

    def _revoke(self, resource: str) -> None:
        """Store the state at the end of the run only, and until then the one before the run, from which nothing is lost."""
        log.warning(
            "Resource %s says that its rows come in ascending order of their cursor, and they do not. Its state is stored at the "
            "end of its runs only. Set %s=%s, or correct its row_order.",
            resource,
            keys.COMMIT,
            keys.RUN,
        )
        self._by_page[resource] = False
        self._uncovered.add(resource)
        self._output.offsets({resource: self._before.get(resource)})


def _bounds(path: str, parts: Sequence[Any]) -> tuple[Any, Any]:
    """Return the lowest and the highest cursor of rows; None for both if they are not found by the path's name."""
    found: list[Any] = []
    for rows in parts:
        if not isinstance(rows, pa.Table):
            found += [value for row in rows if (value := row.get(path)) is not None]
        elif path in rows.column_names:
            import pyarrow.compute as pc

            bounds: Any = pc.min_max(rows.column(path))
            found += [value for value in bounds.as_py().values() if value is not None]
    return (min(found), max(found)) if found else (None, None)


def _is_frame(item: Any) -> bool:
    """Return whether an item is a table of Arrow, pandas, or Polars."""
    return isinstance(item, (pa.Table, pa.RecordBatch)) or type(item).__module__.partition(".")[0] in {"pandas", "polars"}


def _arrow(resource: DltResource, item: Any) -> pa.Table:
    if isinstance(item, pa.Table):
        return item
    if isinstance(item, pa.RecordBatch):
        return pa.Table.from_batches([item])
    if hasattr(item, "to_arrow"):
        table: pa.Table = item.to_arrow()
        return table
    if hasattr(item, "columns") and hasattr(item, "dtypes"):
        return pa.Table.from_pandas(item, preserve_index=False)
    raise DataError(f"Resource {resource.name} yields {type(item).__qualname__}, which is no rows.")


def _row(resource: DltResource, item: Any) -> dict[str, Any]:
    """Return an item as a row, as dlt's normalizer does: values alone become the field ``value``."""
    if isinstance(item, Mapping):
        return dict(item)
    for method in ("model_dump", "asdict", "_asdict"):  # of pydantic, and of records
        make = getattr(item, method, None)
        if callable(make):
            row: dict[str, Any] = make()
            return row
    if type(item).__module__.startswith("dlt."):
        raise DataError(f"Resource {resource.name} yields {type(item).__qualname__}, which only a pipeline can read.")
    return {"value": item}


def _too_large(resource: str, size: int) -> str:
    return (
        f"The state of resource {resource or 'of the source itself'} has {size:,} bytes, and Kafka takes about 1,000,000. dlt "
        "keeps there a hash of each row with the highest cursor. Give the resource a primary key that is its cursor, "
        'or range_start="open" if no row comes later with the same cursor, or a cursor of which few rows have the same value.'
    )


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
