"""Lists of regular expressions."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.filters import KeyColumns, TableId, filter_of, split_list, table_filter_of


@pytest.mark.parametrize(
    ("text", "items"),
    [("a, b ,,c", ["a", "b", "c"]), (r"a\,b,c\.d", ["a,b", r"c\.d"]), (None, []), ("", [])],
)
def test_a_list_is_split_at_commas_that_are_not_escaped(text: str | None, items: list[str]) -> None:
    assert split_list(text) == items


def test_patterns_match_whole_names_and_ignore_case() -> None:
    included = filter_of("public.t, s2\\..*", None)
    assert [name for name in ("public.t", "PUBLIC.T", "public.t2", "s2.x", "as2.x") if included(name)] == [
        "public.t",
        "PUBLIC.T",
        "s2.x",
    ]


def test_an_exclude_list_leaves_out() -> None:
    included = filter_of(None, "a\\.b")
    assert (included("a.b"), included("a.c")) == (False, True)


@pytest.mark.parametrize(("include", "exclude", "own"), [(None, None, False), ("", "public.t", False), ("public..*", None, True)])
def test_tables_that_sinks_create_are_left_out_unless_a_list_names_them(
    include: str | None, exclude: str | None, own: bool
) -> None:
    included = table_filter_of(include, exclude)
    assert included("public.sluiceway_offsets") == own
    assert included("public.orders")


def test_key_columns_are_in_the_order_of_the_config() -> None:
    keys = KeyColumns("public\\.np:y,x;(.*).z:id")
    assert keys.of(TableId("public", "np"), ["x", "y", "id"]) == ["y", "x"]
    assert keys.of(TableId("s", "z"), ["x", "id"]) == ["id"]
    assert keys.of(TableId("public", "other"), ["x"]) is None
