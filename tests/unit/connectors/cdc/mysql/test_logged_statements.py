"""Statements in the log instead of rows name the captured tables whose changes have no records."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.config import source_config
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.logged_statements import LoggedStatements
from sluiceway.errors import ConnectError
from unit.connectors.cdc.mysql.test_streaming import CONFIG


def _statements(**config: str) -> LoggedStatements:
    tables = Tables()
    for name in ("t", "other"):
        tables.put(TableDefinition(TableId("tt", name)))
    tables.put(TableDefinition(TableId("elsewhere", "t")))
    return LoggedStatements(source_config({**CONFIG, **{key.replace("_", "."): value for key, value in config.items()}}), tables)


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("insert into t values (1)", "tt.t"),
        ("INSERT\nINTO `tt`.`t`(id) select id from other", "tt.t"),
        ("insert low_priority ignore t set id = 1", "tt.t"),
        ("insert delayed into new_one values (1)", "tt.new_one"),
        ("replace t values (1)", "tt.t"),
        ("/* app */ insert /* x */ into tt.t values (1)", "tt.t"),
        ("set statement max_statement_time=5 for update t set a = 1", "tt.t"),
        ("update low_priority t as x, other set x.a = 1", "tt.other, tt.t"),
        ("update elsewhere.t join tt.other using (id) set a = 1", "tt.other"),
        ("delete from t where id = 1", "tt.t"),
        ("delete t, other from t join other", "tt.other, tt.t"),
        ("with x as (select 1) delete from t where id in (select * from x)", "tt.t"),
        ("load data concurrent infile '/tmp/SQL_LOAD-1' ignore into table `t` fields terminated by ','", "tt.t"),
        ("create table t as select 1", "tt.t"),
        ("create or replace table if not exists tt.u (id int) select 1 as id", "tt.u"),
        ("SELECT `tt`.`f`(1)", "tables of tt"),
        ("analyze update t set a = 1", "tt.t"),
        ("ANALYZE FORMAT=JSON DELETE FROM t", "tt.t"),
        ('update "t" set a = .5', "tt.t"),
        ('update "tt"."t", other set a = 1', "tt.other, tt.t"),
        ('insert into "t" values (1)', "tt.t"),
        ("create table t (a int) values (1), (2)", "tt.t"),
        ("create table t values row(1)", "tt.t"),
        ("create table t as table other", "tt.t"),
        ("create table t (a int) partition by list (a) (partition p values in (1)) with x as (select 1) table x", "tt.t"),
        ("update some_view set a = 1", "tables of tt"),
        ("delete from tt.some_view where a = 1", "tables of tt"),
    ],
)
def test_a_statement_is_reported_with_its_tables(sql: str, tables: str, caplog: pytest.LogCaptureFixture) -> None:
    statements = _statements()

    assert statements.handle(sql, "tt", "bin.000001:4") is not sql.startswith("create")
    assert f"instead of the rows of {tables} that it changes" in caplog.text
    assert "bin.000001:4" in caplog.text
    assert statements.count == 1
    with pytest.raises(ConnectError, match=r"sluiceway.cdc.statements=warn"):
        _statements(sluiceway_cdc_statements="fail").handle(sql, "tt", "bin.000001:4")


@pytest.mark.parametrize(
    ("sql", "database", "handled"),
    [
        ("insert into elsewhere.t values (1)", "tt", True),
        ("insert into t values (1)", "elsewhere", True),
        ("insert into mysql.rds_heartbeat2(id, value) values (1, 1) on duplicate key update value = 1", "mysql", True),
        ("update elsewhere.t set a = 1", "tt", True),
        ("update unknown set a = 1", "elsewhere", True),
        ("insert into elsewhere.unknown values (1)", "tt", True),
        ("analyze table t", "tt", False),
        ("create table t (a int) partition by range (a) (partition p values less than (1))", "tt", False),
        ("create table t (a int) partition by list (a) (partition p values in (1))", "tt", False),
        ("select f()", "elsewhere", True),
        ("alter table t add c int", "tt", False),
        ("create table t (id int)", "tt", False),
        ("create view v as select * from t", "tt", False),
        ("truncate table t", "tt", False),
        ("", "tt", False),
    ],
)
def test_other_statements_are_not_reported(sql: str, database: str, handled: bool, caplog: pytest.LogCaptureFixture) -> None:
    statements = _statements(sluiceway_cdc_statements="fail")

    assert statements.handle(sql, database, "bin.000001:4") is handled
    assert (statements.count, caplog.text) == (0, "")


_PART = {"table.include.list": r"tt\.t", "database.include.list": "tt"}


def _with_part(**config: str) -> LoggedStatements:
    tables = Tables()
    for name in ("t", "other"):
        tables.put(TableDefinition(TableId("tt", name)))
    return LoggedStatements(source_config({**CONFIG, **_PART, **config}), tables)


@pytest.mark.parametrize("sql", ["insert into v values (1)", "load data infile 'x' into table v", "update v set a = 1"])
def test_a_view_may_hide_a_captured_table(sql: str, caplog: pytest.LogCaptureFixture) -> None:
    statements = _with_part()

    assert statements.handle(sql, "tt", "bin.000001:4")
    assert "instead of the rows of tables of tt that it changes" in caplog.text


@pytest.mark.parametrize("sql", ["insert into other values (1)", "update other set a = 1", "create table v select 1 as a"])
def test_a_table_that_is_not_captured_hides_nothing(sql: str) -> None:
    statements = _with_part(**{"sluiceway.cdc.statements": "fail"})

    statements.handle(sql, "tt", "bin.000001:4")
    assert statements.count == 0


def test_an_unknown_name_is_no_view_if_only_captured_tables_are_known() -> None:
    statements = _with_part(**{"schema.history.internal.store.only.captured.tables.ddl": "true"})

    statements.handle("update unknown set a = 1", "tt", "bin.000001:4")
    assert statements.count == 0


def test_temporary_tables_are_not_captured() -> None:
    statements = _statements(sluiceway_cdc_statements="fail")

    for sql in (
        "create temporary table a (x int)",
        "create or replace temporary table if not exists `b` select 1",
        "drop table c",
    ):
        assert not statements.handle(sql, "tt", "bin.000001:4")
    for sql in ("insert into a values (1)", "update a, tt.b set x = 1", "delete from tt.b"):
        assert statements.handle(sql, "tt", "bin.000001:4")
    assert not statements.handle("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `a`, tt.b", "tt", "bin.000001:4")

    assert statements.count == 0
    for sql in ("insert into a values (1)", "update b set x = 1"):
        with pytest.raises(ConnectError):
            statements.handle(sql, "tt", "bin.000001:4")
