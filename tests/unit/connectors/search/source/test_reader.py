"""Reading a shard: whatever is killed, expires or is written meanwhile, nothing is lost, and nothing is doubled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluiceway.api import Offset, SourceRecord
from sluiceway.connectors.errors import UnreachableError
from sluiceway.connectors.search.client import RefusedError
from sluiceway.connectors.search.connection import Server
from sluiceway.connectors.search.source.client import Checkpoints, Page, SourceClient
from sluiceway.connectors.search.source.config import Mode, SourceOptions
from sluiceway.connectors.search.source.indexes import Shard
from sluiceway.connectors.search.source.reader import ShardReader
from sluiceway.errors import ConnectError
from support.search.simulated import UUID, SimulatedShard

SHARD = Shard("orders", 0, UUID, "orders")
SERVER = Server(("http://127.0.0.1:1",))
DELAY = 3  # of the simulated clock's seconds
Step = tuple[str, int, int]


def options(mode: Mode = Mode.INCREMENTING, **more: Any) -> SourceOptions:
    return SourceOptions(SERVER, ("orders",), mode, poll_interval=0.0, **more)


class Life:
    """Tasks that read a shard one after the other, each from the offset of the last record that its predecessor delivered."""

    def __init__(self, shard: SimulatedShard, chosen: SourceOptions) -> None:
        self.shard, self.options = shard, chosen
        self.now = 0.0
        self.offset: Offset | None = None
        self.delivered: list[tuple[str, int]] = []
        self.passes = 0
        self.start()

    def start(self) -> None:
        """Start another task; the former one has been killed."""
        client = cast(SourceClient, self.shard)
        self.reader = ShardReader(SHARD, self.options, client, self.offset, lambda: self.now)

    def read(self, most: int | None = None) -> bool:
        """Read a page; if it has more than ``most`` records, kill the task after these. Return whether there were records."""
        records = self.reader.next()
        if records is None:
            self.passes += 1
            if self.reader.moved is not None:
                self.offset, self.reader.moved = self.reader.moved, None
            return False
        kept = records[:most]
        self.delivered += [(str(each.key), _number(each)) for each in kept]
        if kept:
            self.offset = kept[-1].source_offset
        if len(kept) < len(records):
            self.start()
        return True

    def finish(self) -> None:
        """Read to the end of a pass."""
        while self.read():
            pass


def _number(record: SourceRecord) -> int:
    assert record.source_offset is not None
    return int(record.source_offset["seq_no"])


def run(life: Life, steps: list[Step], value: Callable[[int], int]) -> None:
    """Do what steps say: write, delete, refresh, read, kill, or let the points in time expire."""
    shard = life.shard
    for action, key, number in steps:
        if action == "write":
            shard.write(f"d{key}", value(number))
        elif action == "begin":
            shard.begin(f"d{key}", value(number))
        elif action == "end" and shard.flying:
            shard.finish(sorted(shard.flying)[number % len(shard.flying)])
        elif action == "delete":
            shard.delete(f"d{key}")
        elif action == "refresh":
            shard.refresh("orders")
        elif action == "expire":
            shard.expire()
        elif action == "kill":
            life.start()
        elif action == "read":
            life.read(number if key % 2 else None)


def steps_of(*actions: str) -> st.SearchStrategy[list[Step]]:
    return st.lists(st.tuples(st.sampled_from(actions), st.integers(0, 9), st.integers(0, 4)), max_size=60)


@settings(max_examples=300)
@given(steps_of("write", "begin", "end", "delete", "refresh", "expire", "kill", "read", "read"), st.integers(1, 4))
def test_writes_are_read_once_although_they_become_visible_out_of_order(steps: list[Step], rows: int) -> None:
    shard = SimulatedShard()
    life = Life(shard, options(rows=rows))
    run(life, steps, lambda number: number)
    for number in list(shard.flying):
        shard.finish(number)
    life.finish()
    life.finish()
    assert len(set(life.delivered)) == len(life.delivered)
    assert {(doc.id, doc.number) for doc in shard.written.values()} <= set(life.delivered)


@settings(max_examples=300)
@given(steps_of("write", "write", "refresh", "expire", "kill", "read", "read"), st.integers(1, 4), st.booleans())
def test_equal_timestamps_are_read_once_wherever_a_page_or_a_task_ends(steps: list[Step], rows: int, nanos: bool) -> None:
    shard = SimulatedShard("date_nanos" if nanos else "date")
    unit = 1_000_000 if nanos else 1
    if nanos:  # the simulated shard compares values with limits in milliseconds
        shard.page = _in_millis(shard.page)  # type: ignore[method-assign, assignment]
    life = Life(shard, options(Mode.TIMESTAMP, field="t", delay=DELAY, rows=rows))
    written = refreshed = 0
    for step in steps:
        life.now += step[2] // 2  # many documents of one time
        if written and life.now - refreshed >= DELAY - 1:  # sooner than the delay
            shard.refresh("orders")
            written = 0
        if step[0] == "write" and not written:
            written, refreshed = 1, int(life.now)
        if step[0] == "refresh":
            written = 0
        run(life, [step], lambda _: int(life.now) * 1000 * unit)
    shard.refresh("orders")
    life.now += 2 * DELAY
    life.finish()
    life.finish()
    assert len(set(life.delivered)) == len(life.delivered)
    assert {(doc.id, doc.number) for doc in shard.written.values()} <= set(life.delivered)


def _in_millis(page: Callable[[str, Any], Page]) -> Callable[[str, Any], Page]:
    def search(view: str, body: Any) -> Page:
        text = body["query"]["bool"]["filter"][0]["range"]["t"]
        limits = {name: value for name, value in text.items() if name != "format"}
        from support.search.simulated import _millis

        numbers = {name: _millis(value) * 1_000_000 for name, value in limits.items()}
        return page(view, {**body, "query": {"bool": {"filter": [{"range": {"t": numbers}}]}}})

    return search


@settings(max_examples=200)
@given(st.lists(st.integers(0, 3), max_size=12), st.integers(1, 4), steps_of("expire", "kill", "read", "read", "refresh"))
def test_a_bulk_pass_reads_each_document_once_although_it_is_interrupted(values: list[int], rows: int, steps: list[Step]) -> None:
    shard = SimulatedShard()
    for number, value in enumerate(values):
        shard.write(f"d{number}", value)
    shard.refresh("orders")
    life = Life(shard, options(Mode.BULK, rows=rows))
    run(life, steps, lambda number: number)
    life.finish()  # the pass that steps began
    begun = {key: sum(1 for each, _ in life.delivered if each == key) for key, _ in life.delivered}
    assert len(set(begun.values())) <= 1, "each document as often as the others"
    assert len(begun) in (0, len(values))
    life.delivered.clear()
    life.finish()
    assert [number for _, number in life.delivered] == list(range(len(values)))


def test_documents_changed_during_a_bulk_pass_do_not_hide_others() -> None:
    shard = SimulatedShard()
    for number in range(6):
        shard.write(f"d{number}", 0)
    shard.refresh("orders")
    life = Life(shard, options(Mode.BULK, rows=2))
    life.read()
    shard.write("d0", 1)
    shard.write("d4", 1)
    shard.refresh("orders")
    shard.expire()
    life.finish()
    assert [key for key, _ in life.delivered] == ["d0", "d1", "d2", "d3", "d5", "d0", "d4"]


def test_a_scheduled_run_with_bulk_mode_reads_all_again() -> None:
    shard = SimulatedShard()
    shard.write("a", 1)
    shard.refresh("orders")
    life = Life(shard, options(Mode.BULK))
    for runs in range(1, 4):
        life.finish()
        assert life.offset == {"mode": "bulk", "uuid": UUID, "seq_no": 0, "finished": True}
        assert life.delivered == [("a", 0)] * runs
        life.start()


def test_without_new_writes_nothing_is_opened_or_refreshed() -> None:
    shard = SimulatedShard()
    life = Life(shard, options())
    life.finish()
    shard.write("a", 1)
    shard.delete("a")
    life.finish()
    assert shard.opened == 1
    assert life.offset == {"mode": "incrementing", "uuid": UUID, "field": "_seq_no", "seq_no": 1}
    life.start()
    life.finish()
    assert shard.opened == 1
    assert shard.views == {}


def test_a_document_that_becomes_visible_within_the_delay_is_not_lost() -> None:
    shard = SimulatedShard("date")
    life = Life(shard, options(Mode.TIMESTAMP, field="t", delay=DELAY))
    early = shard.begin("early", 10_000)
    shard.write("late", 11_000)
    shard.refresh("orders")
    life.now = 12.0
    life.finish()
    shard.finish(early)
    shard.refresh("orders")
    life.now = 20.0
    life.finish()
    assert [key for key, _ in life.delivered] == ["early", "late"]


def test_an_offset_without_a_record_is_not_stored_after_a_later_record() -> None:
    shard = SimulatedShard()
    shard.delete("a")
    life = Life(shard, options())
    assert life.reader.next() is None
    assert life.reader.moved is not None
    shard.write("b", 1)
    assert life.reader.next() is not None
    assert life.reader.moved is None


def test_a_pass_that_a_killed_task_had_ended_is_followed_by_another_at_once() -> None:
    shard = SimulatedShard()
    shard.write("a", 1)
    shard.refresh("orders")
    life = Life(shard, replace(options(Mode.BULK), poll_interval=60.0))
    assert life.read()
    life.start()
    assert not life.read()
    assert life.reader.due == 0
    assert life.read()


def test_a_point_in_time_that_failed_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SimulatedShard()
    shard.write("a", 1)
    page = shard.page

    def only_others(view: str, body: Any) -> Page:
        if view == "1":
            raise RefusedError(500, "node not connected")
        return page(view, body)

    monkeypatch.setattr(shard, "page", only_others)
    life = Life(shard, options())
    with pytest.raises(RefusedError):
        life.read()
    assert life.read()


def test_an_index_made_again_is_read_from_its_beginning() -> None:
    shard = SimulatedShard()
    shard.write("a", 1)
    life = Life(shard, options())
    life.offset = {"mode": "incrementing", "uuid": "another", "field": "_seq_no", "seq_no": 7}
    life.start()
    life.finish()
    assert life.delivered == [("a", 0)]


def test_an_index_made_again_while_a_task_reads_it_waits_for_the_connector(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SimulatedShard()
    shard.write("a", 1)
    life = Life(shard, options(index_interval=60.0))
    monkeypatch.setattr(shard, "checkpoints", lambda _: Checkpoints("another", {0: 9}))
    assert not life.read()
    assert shard.opened == 0
    assert life.reader.due > 0


def test_a_shard_without_a_primary_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SimulatedShard()
    monkeypatch.setattr(shard, "checkpoints", lambda _: Checkpoints(UUID, {}))
    with pytest.raises(UnreachableError, match="not active"):
        Life(shard, options()).read()


def test_points_in_time_that_expire_at_once_are_not_opened_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SimulatedShard()
    shard.write("a", 1)
    life = Life(shard, options())
    gone = RefusedError(404, "No search context found", "search_context_missing_exception")
    monkeypatch.setattr(shard, "page", lambda *_: (_ for _ in ()).throw(gone))
    with pytest.raises(UnreachableError, match="expire at once"):
        life.read()


def test_a_pass_continues_after_its_last_page_once_the_server_answers_again(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SimulatedShard()
    for number in range(4):
        shard.write(f"d{number}", 0)
    life = Life(shard, options(rows=2))
    life.read()
    page = shard.page
    monkeypatch.setattr(shard, "page", lambda *_: (_ for _ in ()).throw(UnreachableError("away")))
    with pytest.raises(UnreachableError):
        life.read()
    monkeypatch.setattr(shard, "page", page)
    life.finish()
    assert [key for key, _ in life.delivered] == ["d0", "d1", "d2", "d3"]
    assert shard.views == {}, "the lost point in time is closed too"


def test_a_document_without_source_fails_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = SimulatedShard()
    shard.write("a", 1)
    monkeypatch.setattr(shard, "page", lambda *_: Page([{"_id": "a", "sort": [0]}], "v"))
    with pytest.raises(ConnectError, match="keeps no _source"):
        Life(shard, options()).read()


FIELD = options(Mode.TIMESTAMP, field="a.t")


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"a.t": {"text"}}, "has the type text"),
        ({"a.t": {"date", "keyword"}}, "has the type date, keyword"),
        ({"a": {"object"}}, "no field a.t"),
        ({"a": {"nested"}, "a.t": {"date"}}, "nested objects"),
    ],
)
def test_a_field_that_cannot_be_sorted_by_says_what_to_set(types: dict[str, set[str]], message: str) -> None:
    shard = SimulatedShard()
    shard.field_types = lambda *_: types  # type: ignore[method-assign]
    shard.write("a", 1)
    shard.refresh("orders")
    with pytest.raises(ConnectError, match=f"{message}.*Set timestamp.field"):
        Life(shard, FIELD).read()


def test_an_empty_index_may_define_the_field_later() -> None:
    shard = SimulatedShard("date")
    shard.field_types = lambda *_: {}  # type: ignore[method-assign]
    life = Life(shard, FIELD)
    assert not life.read()
    del shard.field_types
    shard.write("a", 1)
    shard.refresh("orders")
    life.now = 1.0
    assert life.read()
