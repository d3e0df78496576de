"""The private names of dlt, each as DltSource needs it. A new minor version of dlt needs a look at what fails here."""

from __future__ import annotations

import datetime as dt
import decimal
import os
from collections.abc import Iterator
from typing import Any

import dlt
import pytest
from dlt.extract import DltSource
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.dlt import internals
from support import dlt_sources


@pytest.fixture(autouse=True)
def no_values() -> Iterator[None]:
    internals.use_values({})
    yield
    internals.use_values({})


def test_values_are_looked_up_in_the_config_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLACE", "environment")
    internals.use_values({"password": "p", "sources": {"place": "below"}})
    assert dlt.secrets["password"] == "p"
    assert dlt.config["sources.place"] == "below"
    assert dlt.config.get("place") is None
    assert os.environ["PLACE"] == "environment"


def test_pages_come_as_they_are_yielded_with_the_state_that_covers_them() -> None:
    state: dict[str, Any] = {}
    found = []
    for page in internals.pages(dlt_sources.numbers(rows=250), state):
        cursor = state["sources"]["numbers"]["resources"]["numbers"]["incremental"]["id"]
        found.append((page.resource.name, len(page.items), cursor["last_value"], page.ahead))
    assert found == [("numbers", 100, 99, False), ("numbers", 100, 199, False), ("numbers", 50, 249, False)]


def test_a_state_of_another_process_continues() -> None:
    state = {
        "sources": {"numbers": {"resources": {"numbers": {"incremental": {"id": {"last_value": 197, "unique_hashes": []}}}}}}
    }
    rows = [row["id"] for page in internals.pages(dlt_sources.numbers(rows=200), state) for row in page.items]
    assert rows == [198, 199]


def test_pages_that_are_made_ahead_are_told() -> None:
    @dlt.resource(name="deferred")
    def deferred() -> Iterator[Any]:
        @dlt.defer
        def page(number: int) -> list[dict[str, int]]:
            return [{"id": number}]

        yield from (page(number) for number in range(20))

    found = list(internals.pages(_source(deferred), {}))
    assert len(found) == 20
    assert any(page.ahead for page in found)


def test_the_state_of_a_resource_that_replaces_is_reset() -> None:
    @dlt.resource(name="whole", write_disposition="replace")
    def whole() -> Iterator[Any]:
        yield {"seen": dlt.current.resource_state().get("x")}

    state = {"sources": {"whole": {"resources": {"whole": {"x": 1}}}}}
    assert [page.items for page in internals.pages(_source(whole), state)] == [{"seen": None}]


def test_functions_of_sources_may_ask_for_a_state() -> None:
    @dlt.source(name="asking")
    def asking() -> Any:
        dlt.current.source_state()["x"] = 1
        return dlt.resource([{"id": 1}], name="one")

    with internals.without_state():
        assert list(asking().resources) == ["one"]


def test_the_cursor_of_a_resource_is_found_when_it_is_read() -> None:
    source = dlt_sources.numbers(rows=1)
    [page] = internals.pages(source, {})
    cursor = internals.incremental_of(page.resource)
    assert (cursor.cursor_path, cursor.row_order, cursor.range_start) == ("id", "asc", "closed")
    assert cursor.last_value_func is max
    assert internals.incremental_of(dlt_sources.counting().resources["all"]) is None


def test_resources_that_transformers_read_are_found() -> None:
    assert internals.read_by_transformers(dlt_sources.derived()) == {"numbers"}
    assert internals.read_by_transformers(dlt_sources.numbers()) == set()


def test_marks_of_pages_are_understood() -> None:
    @dlt.resource(name="marked")
    def marked() -> Iterator[Any]:
        yield dlt.mark.with_table_name({"id": 1}, "other")
        yield dlt.mark.with_hints({"id": 2}, dlt.mark.make_hints(primary_key="id"))
        yield dlt.mark.with_hints({"id": 3}, dlt.mark.make_hints(table_name="third"), create_table_variant=True)
        yield dlt.mark.materialize_table_schema()

    pages = []
    for page in internals.pages(_source(marked), {}):
        pages.append((internals.table_of_meta(page.resource, page.meta), internals.brings_hints(page.meta)))
        if pages == [("other", False), (None, True)]:
            assert page.resource.compute_table_schema()["columns"]["id"]["primary_key"]
    assert pages == [("other", False), (None, True), ("third", True), (None, False)]
    assert internals.is_schema_only(dlt.mark.materialize_table_schema())
    assert not internals.is_schema_only([])


def test_files_for_a_destination_are_noticed() -> None:
    @dlt.resource(name="imported")
    def imported() -> Iterator[Any]:
        yield dlt.mark.with_file_import("/tmp/no-file.jsonl", "jsonl", 1)  # noqa: S108 (it is not opened)

    assert [internals.is_file(page.meta) for page in internals.pages(_source(imported), {})] == [True]


STATES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs", "Co"]))
    | st.datetimes(timezones=st.just(dt.timezone.utc))
    | st.dates()
    | st.times()
    | st.decimals(allow_nan=False, allow_infinity=False)
    | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(STATES)
def test_every_state_is_text_and_back(state: Any) -> None:
    assert internals.state_from_text(internals.state_to_text(state)) == state


def test_a_state_is_readable() -> None:
    state = {
        "at": dt.datetime(2026, 1, 1, tzinfo=dt.timezone.utc),
        "sum": decimal.Decimal("1.50"),
        "text": "!x",
    }
    assert internals.state_to_text(state) == ('{"at":"!timestamp 2026-01-01T00:00:00+00:00","sum":"!decimal 1.50","text":"!!x"}')


@pytest.mark.parametrize("text", ['{"a": "!moment 1"}', '{"a": "!timestamp soon"}', "{", '{"a": "!decimal x"}'])
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        internals.state_from_text(text)


def _source(resource: Any) -> DltSource:
    return DltSource(dlt.Schema(resource.name), resource.name, [resource])
