"""Names of topics, schemas and fields."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.naming import TopicNames, adjuster, field_adjuster


def test_other_characters_become_underscores_in_topics() -> None:
    assert TopicNames("p").table(TableId("public", "weird-tab$1")) == "p.public.weird-tab_1"


def test_the_delimiter_separates_all_parts() -> None:
    topics = TopicNames("p", delimiter="-")
    assert (topics.table(TableId("s", "t")), topics.heartbeat, topics.transaction) == (
        "p-s-t",
        "__debezium-heartbeat-p",
        "p-transaction",
    )


@pytest.mark.parametrize(
    ("mode", "name", "adjusted"),
    [
        ("none", "a-b.1c", "a-b.1c"),
        ("avro", "a-b.1c", "a_b._c"),
        ("avro_unicode", "my_names.weird-tab_1", "my_u005fnames.weird_u002dtab_u005f1"),
    ],
)
def test_schema_names_become_valid(mode: str, name: str, adjusted: str) -> None:
    assert adjuster(mode)(name) == adjusted


@pytest.mark.parametrize(
    ("name", "adjusted"), [("a.b", "a_b"), ("1st", "_1st"), ("a.1", "a_1"), ("-x", "_x"), ("ä", "_"), ("", "")]
)
def test_field_names_become_valid_and_keep_digits(name: str, adjusted: str) -> None:
    assert field_adjuster("avro")(name) == adjusted
