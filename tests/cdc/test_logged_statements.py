# ruff: noqa: S608 (of databases of our own)
"""Real servers whose log has statements instead of rows: each one on a captured table is reported, and the log is read on."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from cdc.captured import Captured
from sluiceway.errors import ConnectError
from support.capture import Folded, TaskRun
from support.eventually import eventually

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(600)]

_SETUP = (
    *(f"create table {name} (id int primary key, v int)" for name in ("t", "u", "other")),
    "create view seen as select * from t",
    "create procedure adds() modifies sql data insert into t values (100, 0)",
    "create function added(n int) returns int deterministic modifies sql data begin insert into u values (n, 0); return n; end",
    "insert into other values (1, 0), (2, 0)",
)
_STATEMENTS = {
    "insert into t values (1, 0), (2, 0), (3, 0)": "{}.t",
    "insert ignore into `t` (id) values (1), (4)": "{}.t",
    "insert into u select id, v from t order by id": "{}.u",
    "replace into t values (1, 5)": "{}.t",
    "insert into t values (5, 0) on duplicate key update v = v + 1": "{}.t",
    "update t set v = v + 1 where id = 1": "{}.t",
    "update t join u using (id) set t.v = 7, u.v = 8 where t.id = 2": "{}.t, {}.u",
    "delete from u where id = 3": "{}.u",
    "delete t, u from t join u using (id) where t.id = 2": "{}.t, {}.u",
    "update seen set v = 9 where id = 1": "tables of {}",
    "call adds()": "{}.t",
    "do added(101)": "tables of {}",
    "/* an application's */ delete from t where id = 4": "{}.t",
    "insert into other values (3, 0)": "",
    "update other set v = 1": "",
    "create temporary table mine (id int)": "",
    "insert into mine values (1)": "",
}
"""Statements, and what their warnings say that they change."""
_ROWS_IF_MIXED = (
    "load data infile '{file}' into table t fields terminated by ','",
    "insert into t values (200, uuid_short() * 0)",
)
_REPORT = re.compile(r"instead of the rows of (.*?) that it changes")


def _config(source: Captured, **more: str) -> dict[str, str]:
    tables = ",".join(f"{source.schema}.{name}" for name in "tu")
    return {**source.config, "snapshot.mode": "no_data", "include.schema.changes": "false", "table.include.list": tables, **more}


def _starts(run: TaskRun) -> bool:
    return not run.poll() and bool(run.offset)


def _session(source: Captured, form: str, *statements: str) -> None:
    source.execute(f"set session binlog_format = {form}", *statements)


def _arrives(source: Captured, run: TaskRun, number: int) -> Folded:
    """Return what the records up to a new row lead to."""
    _session(source, "ROW", f"insert into t values ({number}, 0)")
    folded, topic = Folded(), f"c.{source.schema}.t"
    run.fold_until(folded, lambda: (number,) in folded.tables.get(topic, {}))
    return folded


@pytest.mark.parametrize("form", ["STATEMENT", "MIXED"])
def test_each_change_without_rows_is_reported_and_counted(
    binlog_source: Captured, form: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source, file = binlog_source, tmp_path / "rows.csv"
    file.write_text("300,1\n301,2\n")
    source.execute(*_SETUP)
    with TaskRun(source.task, _config(source)) as run:
        eventually(partial(_starts, run), what="the first offset")
        _session(source, form, *_STATEMENTS, *(statement.format(file=file) for statement in _ROWS_IF_MIXED))
        folded = _arrives(source, run, 999)
        expected, rows = [changed.format(*[source.schema] * 2) for changed in _STATEMENTS.values() if changed], {999: 0}
        if form == "MIXED":
            rows |= {300: 1, 301: 2, 200: 0}
        else:
            expected += [f"{source.schema}.t"] * len(_ROWS_IF_MIXED)
        assert _REPORT.findall(caplog.text) == expected
        assert folded.tables == {f"c.{source.schema}.t": {(number,): (number, value) for number, value in rows.items()}}
        assert run.metrics["statements-without-rows"] == len(expected)


def test_a_change_without_rows_ends_the_task_at_each_start_if_asked(
    binlog_source: Captured, caplog: pytest.LogCaptureFixture
) -> None:
    source = binlog_source
    source.execute(*_SETUP)
    strict = _config(source, **{"sluiceway.cdc.statements": "fail"})
    with TaskRun(source.task, strict) as run:
        eventually(partial(_starts, run), what="the first offset")
        _session(source, "STATEMENT", "insert into other values (3, 0)")
        _arrives(source, run, 1)
        _session(source, "STATEMENT", "update t set v = 1")
        _session(source, "ROW", "insert into t values (2, 0)")
        offset = _failure(source, run)
    with TaskRun(source.task, strict, offset) as run:
        offset = _failure(source, run)
    assert "has a statement at" not in caplog.text
    with TaskRun(source.task, _config(source), offset) as run:
        assert _arrives(source, run, 3).tables == {f"c.{source.schema}.t": {(2,): (2, 0), (3,): (3, 0)}}
        assert run.metrics["statements-without-rows"] == 1


def _failure(source: Captured, run: TaskRun) -> Any:
    """Wait until the task fails for the statement. Return the offset that it has then."""
    with pytest.raises(ConnectError, match=rf"instead of the rows of {source.schema}\.t that it changes: 'update t set v = 1'"):
        eventually(lambda: run.poll() and None, what="the failure")
    return run.offset
