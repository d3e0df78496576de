"""Tests of the data sets that a connector reads and writes."""

from __future__ import annotations

import pytest

from sluiceway.provider.lineage.datasets import DataSet, lineage
from support.fuzz import PASSWORDS, fuzz

BOOTSTRAP = "broker:9092,other:9092"
FILE_SOURCE = {"connector.class": "FileStreamSource", "file": "/var/log/app.log", "topic": "log"}
TRANSFORM = "org.apache.kafka.connect.transforms"
PG = {"connector.class": "io.confluent.connect.jdbc.JdbcSourceConnector", "connection.url": "jdbc:postgresql://db/shop"}


def _kafka(topic: str) -> DataSet:
    return DataSet("kafka://broker:9092", topic)


@pytest.mark.parametrize(
    ("config", "inputs", "topics"),
    [
        (FILE_SOURCE, ["file /var/log/app.log"], ["log"]),
        ({**FILE_SOURCE, "file": "relative.txt"}, [], ["log"]),
        ({**FILE_SOURCE, "file": "${env:LOG}"}, [], ["log"]),
        ({"input.path": "/landing", "topic": "t"}, ["file /landing"], ["t"]),
        (
            {**PG, "table.whitelist": 'orders,stock."items"', "topic.prefix": "shop-"},
            ["postgres://db:5432 shop.public.orders", "postgres://db:5432 shop.stock.items"],
            ["shop-orders", "shop-items"],
        ),
        (
            {"connection.url": "jdbc:mysql://me:hidden@db:3307/shop?password=hidden", "table.whitelist": "orders"},
            ["mysql://db:3307 shop.orders"],
            ["orders"],
        ),
        ({"connection.url": "${file:/db:url}", "table.whitelist": "orders"}, [], ["orders"]),
        ({"connection.url": "jdbc:postgresql://db/${env:DB}", "table.whitelist": "orders"}, [], ["orders"]),
        ({"connection.url": "jdbc:postgresql://db:port/shop", "table.whitelist": "orders"}, [], ["orders"]),
        (
            {"source.cluster.bootstrap.servers": "there:9092", "source.cluster.alias": "a", "topics": "one,two.*"},
            ["kafka://there:9092 one"],
            ["a.one"],
        ),
        ({"connector.class": "VerifiableSource"}, [], []),
        (
            {**FILE_SOURCE, "transforms": "a", "transforms.a.type": f"{TRANSFORM}.HoistField$Value"},
            ["file /var/log/app.log"],
            ["log"],
        ),
        ({**FILE_SOURCE, "transforms": "a, b", "transforms.b.type": f"{TRANSFORM}.RegexRouter"}, ["file /var/log/app.log"], []),
        ({**FILE_SOURCE, "transforms": "a", "transforms.a.type": "TimestampRouter"}, ["file /var/log/app.log"], []),
        ({**FILE_SOURCE, "transforms": "a", "transforms.b.type": "RegexRouter"}, ["file /var/log/app.log"], ["log"]),
    ],
)
def test_a_source_reads_from_outside_and_writes_topics(config: dict[str, str], inputs: list[str], topics: list[str]) -> None:
    found = lineage(config, bootstrap=BOOTSTRAP, sink=False)
    assert [" ".join(each) for each in found.inputs] == inputs
    assert list(found.outputs) == [_kafka(topic) for topic in topics]


@pytest.mark.parametrize(
    ("config", "outputs"),
    [
        ({"file": "/out.txt"}, ["file /out.txt"]),
        ({**PG, "table.name.format": "raw.${topic}"}, ["postgres://db:5432 shop.raw.a", "postgres://db:5432 shop.raw.b"]),
        (PG, ["postgres://db:5432 shop.public.a", "postgres://db:5432 shop.public.b"]),
    ],
)
def test_a_sink_reads_topics_and_writes_outside(config: dict[str, str], outputs: list[str]) -> None:
    found = lineage({**config, "topics": "a, b"}, bootstrap=BOOTSTRAP, sink=True)
    assert list(found.inputs) == [_kafka("a"), _kafka("b")]
    assert [" ".join(each) for each in found.outputs] == outputs


def test_topics_that_match_a_pattern_are_not_named() -> None:
    assert lineage({"topics.regex": "a.*", "file": "/out"}, bootstrap=BOOTSTRAP, sink=True).inputs == ()


FORMS = [
    "jdbc:postgresql://user:{}@h/d",
    "jdbc:mysql://h/d?user=u&password={}",
    "jdbc:mariadb://user:{}@h:3306/d?connectTimeout=1",
    "jdbc:sqlserver://h:1433;user=sa;password={};databaseName=d",
    "jdbc:oracle:thin:user/{}@//h:1521/d",
    "mongodb://user:{}@a,b/d",
]


@pytest.mark.parametrize("url", ["mysql://user:12345/@h/d", "mysql://user:p@ss/hunter2@h/d", "postgresql://user:12345?x@h/d"])
def test_a_url_whose_password_may_end_anywhere_names_no_data_set(url: str) -> None:
    config = {"connection.url": f"jdbc:{url}", "table.whitelist": "t", "topics": "t"}
    assert lineage(config, bootstrap=BOOTSTRAP, sink=False).inputs == ()
    assert lineage(config, bootstrap=BOOTSTRAP, sink=True).outputs == ()


@pytest.mark.parametrize("form", FORMS)
@fuzz("password", share=1 / len(FORMS), password=PASSWORDS)
def test_no_data_set_shows_a_part_of_a_password_with_separators(form: str, password: str) -> None:
    config = {"connection.url": form.format(password), "table.whitelist": "t", "topics": "t"}
    shown = str([lineage(config, bootstrap=BOOTSTRAP, sink=sink) for sink in (False, True)])
    assert "hunter2" not in shown
    assert "12345" not in shown
