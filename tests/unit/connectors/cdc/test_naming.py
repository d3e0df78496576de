"""Names of topics, schemas and fields."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.config import common_config
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.config import DEFINITION
from sluiceway.connectors.cdc.naming import TopicNames, adjuster, field_adjuster
from sluiceway.connectors.cdc.naming_strategies import STRATEGIES
from sluiceway.connectors.cdc.postgres.keys import CONFIG

REGEX = {"topic.regex": r"(.*)\.ord_(\d+)", "topic.replacement": "$1.orders"}


def names(database: str, strategy: str | None, **more: str) -> TopicNames:
    definition = CONFIG if database == "postgresql" else DEFINITION
    config = {"topic.prefix": "p", **{key.replace("_", "."): value for key, value in more.items()}}
    if strategy is not None:
        config["topic.naming.strategy"] = f"io.debezium.schema.{strategy}TopicNamingStrategy"
    return common_config(definition, config).topics


def regex_names(**more: str) -> TopicNames:
    return names("postgresql", "SchemaRegex", topic_regex=REGEX["topic.regex"], topic_replacement="$1.orders", **more)


@pytest.mark.parametrize(
    ("database", "strategy", "topic"),
    [
        ("postgresql", None, "p.s-1.ord__1"),
        ("postgresql", "Schema", "p.s-1.ord__1"),
        ("postgresql", "Default", "p.ord__1"),
        ("postgresql", "SchemaUnicode", "p.s-1.ord_u005f_u00241"),
        ("postgresql", "DefaultUnicode", "p.ord_u005f_u00241"),
        ("mariadb", None, "p.s-1.ord__1"),
        ("mariadb", "Default", "p.s-1.ord__1"),
        ("mariadb", "Schema", "p.ord__1"),
        ("mariadb", "DefaultUnicode", "p.s-1.ord_u005f_u00241"),
        ("mariadb", "SchemaUnicode", "p.ord_u005f_u00241"),
    ],
)
def test_a_strategy_names_topics(database: str, strategy: str | None, topic: str) -> None:
    assert names(database, strategy).table(TableId("s-1", "ord_$1")) == topic


@pytest.mark.parametrize(
    ("database", "kind", "table", "topic", "identifier"),
    [
        ("postgresql", "DefaultRegex", "ord_1", "p.orders", "p.ord_1"),
        ("postgresql", "SchemaRegex", "ord_1", "p.s.orders", "p.s.ord_1"),
        ("postgresql", "SchemaRegex", "ord_x", "p.s.ord_x", "p.s.ord_x"),
        ("postgresql", "SchemaRegex", "a$b", "p.s.a_b", "p.s.a$b"),
        ("mariadb", "DefaultRegex", "ord_1", "p.s.orders", "p.s.ord_1"),
        ("mariadb", "SchemaRegex", "ord_1", "p.orders", "p.ord_1"),
    ],
)
def test_a_regular_expression_joins_tables_whose_keys_stay_apart(
    database: str, kind: str, table: str, topic: str, identifier: str
) -> None:
    topics = names(database, kind, topic_regex=REGEX["topic.regex"], topic_replacement="$1.orders")
    id_ = TableId("s", table)
    assert (topics.table(id_), topics.key_field(id_)) == (topic, ("__dbz__physicalTableIdentifier", identifier))


def test_options_of_the_key_field() -> None:
    table = TableId("s", "ord_1")
    assert regex_names(topic_key_enforce_uniqueness="false").key_field(table) is None
    assert regex_names(topic_key_field_name="t").key_field(table) == ("t", "p.s.ord_1")
    changed = regex_names(topic_key_field_regex=".*_(.*)", topic_key_field_replacement="no $1")
    assert changed.key_field(table) == ("__dbz__physicalTableIdentifier", "no 1")
    assert regex_names(topic_key_field_regex="x", topic_key_field_replacement="y").key_field(table) == (
        "__dbz__physicalTableIdentifier",
        "p.s.ord_1",
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_only_a_strategy_with_a_regular_expression_has_a_key_field(strategy: str) -> None:
    topics = names("mariadb", strategy.removeprefix("io.debezium.schema.").removesuffix("TopicNamingStrategy"))
    assert (topics.key_field(TableId("s", "t")) is not None) == ("Regex" in strategy)
    assert (topics.heartbeat, topics.transaction, topics.schema_changes) == ("__debezium-heartbeat.p", "p.transaction", "p")


def test_an_empty_replacement_keeps_the_topic() -> None:
    topics = names("postgresql", "SchemaRegex", topic_regex="p.s.(x?).*", topic_replacement="$1")
    assert topics.table(TableId("s", "t")) == "p.s.t"


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
