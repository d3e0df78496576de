# ruff: noqa: S608 (of databases of our own)
"""A MariaDB with all names in lower case (``lower_case_table_names=1``), whose statements have others."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from cdc.captured import Captured, captured_binlog
from sluiceway.errors import ConnectError
from support.capture import TaskRun
from support.mariadb import MariaDbServer

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDbServer]:
    # Without the names of columns in the log, the structure is that of the statements.
    with MariaDbServer(binlog=True, more=["--lower-case-table-names=1", "--binlog-row-metadata=MINIMAL"]) as running:
        yield running


@pytest.fixture
def source(server: MariaDbServer, kafka_bootstrap: str, unique: Callable[[str], str]) -> Iterator[Captured]:
    with captured_binlog(server, kafka_bootstrap, unique("c").lower()) as found:
        yield found


def _with_lists(source: Captured) -> dict[str, str]:
    upper = source.schema.upper()
    lists = {
        "database.include.list": upper,
        "table.include.list": rf"{upper}\.Orders.*",
        "message.key.columns": f"{upper}.ORDERS.*:ID",
    }
    return {**source.config, **lists, "include.schema.changes": "false", "skipped.operations": "none"}


def test_statements_in_any_letter_case_are_on_the_tables_of_the_log(source: Captured, caplog: pytest.LogCaptureFixture) -> None:
    upper = source.schema.upper()
    source.execute("create table Orders (Id int primary key, A int)", "insert into ORDERS values (1, 1)")
    with TaskRun(source.task, _with_lists(source)) as run:
        [first] = run.take(1)
        assert (first.topic, first.key["Id"], first.value["source"]["table"]) == (f"c.{source.schema}.orders", 1, "orders")
        source.execute(
            "ALTER TABLE ORDERS ADD B varchar(10) first",
            "insert into orders values ('b', 2, 2)",
            f"rename table orders to {upper}.Orders2",
            f"alter table `{upper}`.`ORDERS2` drop column a, rename to OrderS3",
            "insert into oRDERS3 values ('c', 3)",
            "create table ORDERS4 like Orders3",
            "insert into orders4 values ('d', 4)",
            "truncate table ORDERS4",
            "drop table if exists OrderS4",
            "create table Orders4 (id int)",
            "insert into ORDERS4 values (5)",
        )
        records = run.take(5)
    assert [record.topic.rpartition(".")[2] for record in records] == ["orders", "orders3", "orders4", "orders4", "orders4"]
    assert [record.value["op"] for record in records] == ["c", "c", "c", "t", "c"]
    rows = [record.value["after"] for record in records if record.value["op"] == "c"]
    assert [{field.name: row[field.name] for field in row.schema.fields} for row in rows] == [
        {"B": "b", "Id": 2, "A": 2},
        {"B": "c", "Id": 3},
        {"B": "d", "Id": 4},
        {"id": 5},
    ]
    assert "read from the server" not in caplog.text


def test_a_restart_knows_the_tables_by_the_names_of_the_log(source: Captured, caplog: pytest.LogCaptureFixture) -> None:
    source.execute("create table Orders (id int primary key)", "insert into ORDERS values (1)")
    with TaskRun(source.task, _with_lists(source)) as run:
        run.take(1)
        source.execute("alter table ORDERS add Extra int", "insert into orders values (2, 2)")
        run.take(1)
        offset = run.offset
    source.execute("insert into Orders values (3, 3)")
    with TaskRun(source.task, _with_lists(source), offset) as run:
        [record] = run.take(1)
    assert record.value["after"]["Extra"] == 3
    assert "read from the server" not in caplog.text


@pytest.mark.parametrize("key", ["signal.data.collection", "snapshot.select.statement.overrides"])
def test_an_exact_name_in_another_letter_case_is_refused(source: Captured, key: str) -> None:
    source.execute("create table Orders (id int primary key)", "insert into ORDERS values (1)")
    name = f"{source.schema}.Orders"
    config = {**source.config, key: name, f"{key}.{name}": f"select * from {name}"}
    with TaskRun(source.task, config) as run, pytest.raises(ConnectError, match=rf"Write {name.lower()} in {key}"):
        run.take(10)
    lowered = {
        **source.config,
        key: name.lower(),
        f"{key}.{name.lower()}": f"select * from {name}",
        "include.schema.changes": "false",
    }
    if key != "signal.data.collection":
        with TaskRun(source.task, lowered) as run:
            assert run.take(1)[0].key["id"] == 1
