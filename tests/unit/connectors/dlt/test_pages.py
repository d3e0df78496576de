"""Offsets of the pages of a run: a kill after any of them loses nothing."""

from __future__ import annotations

import datetime as dt
import json
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import dlt
import pyarrow as pa
import pytest
from dlt.extract import DltSource
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluiceway.connectors.dlt import internals, pages
from sluiceway.connectors.dlt.config import DltConfig
from sluiceway.connectors.dlt.pages import SourceReader
from sluiceway.connectors.dlt.tables import Table
from sluiceway.errors import ConnectError, DataError
from support import dlt_sources


class KilledError(Exception):
    """The run ends here."""


class Kept:
    """Keeps what a task would, and ends the run after a number of frames."""

    def __init__(self, frames: int | None = None) -> None:
        self.frames = frames
        self.schemas: list[tuple[str, list[str]]] = []
        self.sent: list[tuple[str, dict[str, Any]]] = []
        self.pages: list[tuple[str, int, bool, bool]] = []
        self.stored: dict[str, Any] = {}

    def _count(self) -> None:
        if self.frames is not None:
            self.frames -= 1
            if self.frames < 0:
                raise KilledError

    def table(self, table: Table) -> None:
        self.schemas.append((table.name, [field.name for field in table.schema.fields]))

    def rows(self, table: Table, rows: pa.RecordBatch, resource: str, offset: Any, *, covered: bool) -> None:
        self._count()
        assert rows.schema.names == [field.name for field in table.schema.fields]
        self.sent += [(table.name, row) for row in rows.to_pylist()]
        self.pages.append((resource, len(rows), offset is not None, covered))
        if offset is not None:
            self.stored[resource] = offset

    def offsets(self, offsets: Mapping[str, Any]) -> None:
        self.stored |= offsets

    def ids(self, field: str = "id") -> list[Any]:
        return [row[field] for _, row in self.sent]


def config(**more: str) -> DltConfig:
    return DltConfig.of({"dlt.source": "a.b", **{key.replace("_", "."): value for key, value in more.items()}})


def run(source: DltSource, kept: Kept | None = None, stored: Mapping[str, Any] | None = None, **more: str) -> Kept:
    """Read a source once, as a reader's process does."""
    internals.use_values({})
    kept = kept or Kept()
    kept.stored |= stored or {}
    offsets = {name: kept.stored.get(name) for name in [*source.resources, ""]}
    kept.stored |= SourceReader(source, config(**more), offsets, kept).read()
    return kept


def source_of(*resources: Any) -> DltSource:
    return DltSource(dlt.Schema(resources[0].name), resources[0].name, list(resources))


def test_pages_in_order_have_an_offset_each() -> None:
    kept = run(dlt_sources.numbers(rows=250))
    assert kept.pages == [("numbers", 100, True, True), ("numbers", 100, True, True), ("numbers", 50, True, True)]
    assert kept.ids() == list(range(250))
    assert json.loads(kept.stored["numbers"]["schema"]) == {
        "numbers": {"id": "bigint", "name": "text", "amount": "double", "even": "bool"}
    }


@pytest.mark.parametrize(
    ("made", "more"),
    [
        (lambda: dlt_sources.numbers(rows=250, order=None), {}),
        (lambda: dlt_sources.numbers(rows=250, order="desc", descends=True), {"dlt_commit": "page"}),
        (lambda: dlt_sources.numbers(rows=250), {"dlt_commit": "run"}),
        (lambda: dlt_sources.counting(rows=250), {"dlt_commit": "page"}),
        (lambda: source_of(_opened(250)), {}),
    ],
    ids=["no order", "newest first", "commit=run", "no cursor", "open range"],
)
def test_other_pages_have_none_until_the_run_has_ended(made: Any, more: dict[str, str]) -> None:
    kept = run(made(), None, None, **more)
    assert [page[2:] for page in kept.pages] == [(False, False)] * len(kept.pages)
    assert sorted(kept.ids()) == list(range(250))
    assert kept.stored


def _opened(rows: int) -> Any:
    @dlt.resource(name="opened")
    def opened(
        cursor: Any = dlt.sources.incremental("id", initial_value=-1, row_order="asc", range_start="open"),  # noqa: B008
    ) -> Iterator[Any]:
        for first in range(cursor.last_value + 1, rows, 100):
            yield [{"id": number} for number in range(first, min(first + 100, rows))]

    return opened


def test_neither_a_transformer_nor_its_parent_has_an_offset_before_the_end() -> None:
    kept = run(dlt_sources.derived(rows=250))
    assert {page[2:] for page in kept.pages} == {(False, False)}
    assert set(kept.stored) == {"numbers", "squares"}


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    kills=st.lists(st.integers(0, 6), max_size=4),
    shape=st.sampled_from(["asc", "no order", "desc", "said asc", "derived", "singles", "open"]),
    commit=st.sampled_from(["auto", "run", "page"]),
)
def test_whatever_is_killed_when_nothing_is_lost(kills: list[int], shape: str, commit: str) -> None:
    """A wrong promise of an order (said asc) may lose rows only before the first page out of order; here that is the second."""
    rows = 430

    def made() -> DltSource:
        return {
            "asc": lambda: dlt_sources.numbers(rows),
            "no order": lambda: dlt_sources.numbers(rows, order=None),
            "desc": lambda: dlt_sources.numbers(rows, order="desc", descends=True),
            "said asc": lambda: dlt_sources.numbers(rows, descends=True),
            "derived": lambda: dlt_sources.derived(rows),
            "singles": lambda: source_of(dlt_sources.singles(rows)),
            "open": lambda: source_of(_opened(rows)),
        }[shape]()

    stored: dict[str, Any] = {}
    found: list[tuple[str, Any]] = []
    for kill in [*kills, None]:
        if shape == "said asc" and kill == 1:
            continue
        kept = Kept(kill)
        try:
            run(made(), kept, stored, dlt_commit=commit)
        except KilledError:
            assert kill is not None
        stored = {name: each for name, each in kept.stored.items() if each is not None}
        found += [(table, row["id"]) for table, row in kept.sent]
    for table in {table for table, _ in found}:
        assert {number for name, number in found if name == table} == set(range(rows))
    if shape == "asc" and commit != "run":
        assert len(found) == rows


def test_a_wrong_promise_of_order_is_noticed_and_the_offset_is_set_back(caplog: pytest.LogCaptureFixture) -> None:
    stored = run(dlt_sources.numbers(rows=50)).stored
    kept = Kept()
    seen = []
    kept.offsets = lambda offsets: seen.append(dict(offsets))  # type: ignore[method-assign]
    run(dlt_sources.numbers(rows=350, descends=True), kept, stored)
    assert seen == [{"numbers": stored["numbers"]}]
    assert [page[2] for page in kept.pages] == [True, False, False]
    assert "Set dlt.commit=run" in caplog.text


def test_single_rows_are_joined_and_covered_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "_SINGLE_SECONDS", 600.0)
    kept = run(source_of(dlt_sources.singles(rows=2500)))
    assert [page[1:] for page in kept.pages] == [(1000, True, True), (1000, True, True), (500, False, False)]


def test_a_single_row_is_handed_over_although_the_next_one_is_long_in_coming() -> None:
    arrived, ended = threading.Event(), threading.Event()

    @dlt.resource(name="slow")
    def slow() -> Iterator[Any]:
        yield {"id": 1}
        assert arrived.wait(60), "the first row waits for the second"
        ended.set()
        yield {"id": 2}

    kept = Kept()
    take = kept.rows

    def rows(*args: Any, **more: Any) -> None:
        take(*args, **more)
        arrived.set()

    kept.rows = rows  # type: ignore[method-assign]
    run(source_of(slow), kept)
    assert ended.is_set()
    assert kept.ids() == [1, 2]


def test_tables_named_by_rows_and_by_marks_are_tables() -> None:
    @dlt.resource(name="mixed", table_name=lambda row: f"kind_{row['kind']}")
    def mixed() -> Iterator[Any]:
        yield [{"kind": "a", "id": 1}, {"kind": "b", "id": 2}, {"kind": "a", "id": 3}]
        yield {"kind": "c", "id": 4}

    @dlt.resource(name="marked")
    def marked() -> Iterator[Any]:
        yield dlt.mark.with_table_name([{"id": 5}], "other")
        yield dlt.mark.with_table_name({"id": 6}, "other")

    kept = run(source_of(mixed, marked))
    assert sorted((table, row["id"]) for table, row in kept.sent) == [
        ("kind_a", 1),
        ("kind_a", 3),
        ("kind_b", 2),
        ("kind_c", 4),
        ("other", 5),
        ("other", 6),
    ]


def test_rows_of_all_kinds_are_rows() -> None:
    import pandas as pd  # type: ignore[import-untyped]
    from pydantic import BaseModel

    class Model(BaseModel):
        id: int

    @dlt.resource(name="kinds")
    def kinds() -> Iterator[Any]:
        yield pa.table({"id": [1, 2]})
        yield [pa.table({"id": [3]}), pa.table({"id": pa.array([], pa.int64())})]
        yield pa.record_batch({"id": [4]})
        yield pd.DataFrame({"id": [5]})
        yield [Model(id=6)]
        yield {"id": 7}
        yield None
        yield []

    @dlt.resource(name="plain")
    def plain() -> Iterator[Any]:
        yield from (1, 2)

    kept = run(source_of(kinds, plain))
    assert sorted(row["id"] for table, row in kept.sent if table == "kinds") == [1, 2, 3, 4, 5, 6, 7]
    assert [row for table, row in kept.sent if table == "plain"] == [{"value": 1}, {"value": 2}]


def test_files_for_destinations_are_refused() -> None:
    @dlt.resource(name="imported")
    def imported() -> Iterator[Any]:
        yield dlt.mark.with_file_import("/tmp/no-file.jsonl", "jsonl", 1)  # noqa: S108 (it is not opened)

    with pytest.raises(DataError, match="imported yields a file"):
        run(source_of(imported))


def test_skipped_resources_send_nothing() -> None:
    skipped = dlt.resource([{"id": 1}], name="skipped", write_disposition="skip")
    assert run(source_of(skipped)).sent == []


def test_the_state_of_a_source_has_an_offset_of_its_own() -> None:
    kept = run(dlt_sources.counting())
    assert json.loads(kept.stored[""]["state"]) == {"runs": 1}
    assert json.loads(run(dlt_sources.counting(), None, kept.stored).stored[""]["state"]) == {"runs": 2}


def test_an_offset_that_kafka_would_not_take_is_an_error_that_says_what_to_do() -> None:
    run(source_of(dlt_sources.same_cursor(1000)))
    with pytest.raises(DataError, match=r"resource same|The state of same|primary key that is its cursor"):
        run(source_of(dlt_sources.same_cursor(70_000)))


@pytest.mark.parametrize("offset", [{"state": "x"}, {"state": "[]"}, {"state": '{"a": "!moment 1"}'}, {"schema": "{"}])
def test_an_offset_that_cannot_be_read_is_an_error(offset: dict[str, str]) -> None:
    with pytest.raises(ConnectError, match="stored offset of resource numbers cannot be read"):
        run(dlt_sources.numbers(), None, {"numbers": offset})


def test_columns_have_the_order_and_the_types_of_the_stored_schema() -> None:
    stored = run(source_of(dlt.resource([{"b": 1, "a": "x"}], name="grown"))).stored
    kept = run(source_of(dlt.resource([{"a": "y", "c": 2, "b": "z"}], name="grown")), None, stored)
    assert kept.schemas == [("grown", ["b", "a", "c", "b__v_text"])]
    assert kept.sent == [("grown", {"b": None, "a": "y", "c": 2, "b__v_text": "z"})]


def test_types_are_dlts_and_microseconds_are_kept() -> None:
    [(_, row)] = run(source_of(dlt_sources.typed())).sent
    micros = int((dlt_sources.START - dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc)) / dt.timedelta(microseconds=1))
    assert row["at"] == micros
    assert row["clock"] == micros % 86_400_000_000
    assert (str(row["price"]), row["large"], row["nested"]) == ("12.50", 2**70, '{"a":[1,{"b":null}]}')


def test_times_may_be_connects() -> None:
    [(_, row)] = run(source_of(dlt_sources.typed()), time_precision_mode="connect").sent
    assert row["at"] == dlt_sources.START.replace(microsecond=123000)
    assert row["clock"] == dlt_sources.START.time().replace(microsecond=123000)


def test_nested_values_may_be_structs() -> None:
    [(_, row)] = run(source_of(dlt_sources.orders()), dlt_nested="struct").sent
    lines = [{"sku": "a", "tags": ["x", "y"]}, {"sku": "b", "tags": None}]
    assert row == {"id": 1, "address": {"city": "Ulm"}, "lines": lines}


def test_nested_values_may_be_topics() -> None:
    found: dict[str, list[dict[str, Any]]] = {}
    for table, row in run(source_of(dlt_sources.orders()), dlt_nested="topics").sent:
        found.setdefault(table, []).append(row)
    [order] = found["orders"]
    assert {name: order[name] for name in ("id", "address__city")} == {"id": 1, "address__city": "Ulm"}
    assert [(each["sku"], each["_dlt_list_idx"], each["_dlt_parent_id"]) for each in found["orders__lines"]] == [
        ("a", 0, order["_dlt_id"]),
        ("b", 1, order["_dlt_id"]),
    ]
    assert [(each["value"], each["_dlt_parent_id"]) for each in found["orders__lines__tags"]] == [
        ("x", found["orders__lines"][0]["_dlt_id"]),
        ("y", found["orders__lines"][0]["_dlt_id"]),
    ]
    again = [row for table, row in run(source_of(dlt_sources.orders()), dlt_nested="topics").sent if table == "orders"]
    assert again == [order]


def test_a_page_beside_which_others_are_made_has_no_offset() -> None:
    """Pages that dlt makes on threads come in any order, and the state covers those that are made already."""
    second_is_made = threading.Event()

    @dlt.resource(name="deferred")
    def deferred(cursor: Any = dlt.sources.incremental("id", initial_value=-1, row_order="asc")) -> Iterator[Any]:  # noqa: B008
        @dlt.defer
        def page(number: int) -> list[dict[str, int]]:
            if number == 0:
                assert second_is_made.wait(60)
            return [{"id": number}]

        yield page(0)
        yield page(1)

    kept = Kept()
    take = kept.rows

    def rows(*args: Any, **more: Any) -> None:
        take(*args, **more)
        second_is_made.set()

    kept.rows = rows  # type: ignore[method-assign]
    run(source_of(deferred), kept)
    assert kept.ids() == [1, 0]
    assert kept.pages[0][2:] == (False, False)
