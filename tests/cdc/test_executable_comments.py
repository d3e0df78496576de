"""Executable comments in the statements that real servers log: the parser sees the columns that the server has made.

The forms are those of the manuals of MariaDB ("Comment Syntax") and MySQL ("Comments"), and forms that look like them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pymysql
import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.ddl.model import Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import apply_statement
from support.mariadb import MariaDbServer
from support.mysql import MySqlServer

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

_NUMBERS = (
    0,
    501,
    5010,
    40000,
    50100,
    50699,
    50700,
    50709,
    80000,
    80023,
    90100,
    99999,
    100000,
    100301,
    101100,
    110000,
    120000,
    199999,
)
_VERSIONS = ("", "050100", *map(str, _NUMBERS), "999999", "1000000")
_OPENINGS = [f"/*{mark}{version}" for mark in ("!", "M!") for version in _VERSIONS]
_OPENINGS += ["/*", "/*m!", "/*M", "/* !", "/*M !", "/*+", "/*!!"]
_FORMS = (
    "create table {t} (z int, {open} c int, {close} y int)",
    "create table {t} ({open}c int,{close}y int)",
    "create table {t} (y int {open} default 5 {close}, z int)",
    "create table {t} (y int, {open} c int /* a note */, {close} z int)",
    "create table {t} (y int, {open} c int comment '*/', {close} z int)",
    "create {open} or replace {close} table {t} (y int {open}){close} {open} comment 'x' {close} {open} /* x */ {close}",
    "create table {t} (y int {open}, c int) -- {close}\n)",
)
_CHANGES = (
    "alter table {t} {open} add c int, {close} add d int",
    "alter table {t} add d int {open} first {close}",
    "alter table {t} {open} drop column y, add x text {close} comment 'x'",
    "alter {open} ignore {close} table {t} {open} add c int {close}",
    "/* first */ alter table {t} {open} rename column y to c, {close} add d int /* last */",
    "drop {open} temporary {close} table {t}",
)


@pytest.fixture(scope="module", params=[MariaDbServer, MySqlServer], ids=["mariadb", "mysql"])
def server(request: pytest.FixtureRequest) -> Iterator[MariaDbServer | MySqlServer]:
    with MariaDbServer(binlog=True) if request.param is MariaDbServer else MySqlServer() as running:
        running.first.execute("create database d")
        yield running


def _columns(cursor: Any, table: str) -> list[str] | None:
    with contextlib.suppress(pymysql.MySQLError):
        cursor.execute(f"show columns from d.{table}")
        return [row[0] for row in cursor.fetchall()]
    return None


def _logged(cursor: Any, statement: str, *, mariadb: bool) -> list[str] | None:
    """Execute a statement and return what the log has of it; None if the server refuses it."""
    cursor.execute("show master status" if mariadb else "show binary log status")
    file, position, *_ = cursor.fetchone()
    try:
        cursor.execute(statement)
    except pymysql.MySQLError:
        return None
    cursor.execute(f"show binlog events in '{file}' from {position}")
    queries = [row[5] for row in cursor.fetchall() if row[2] == "Query"]
    return [text.partition("; ")[2] for text in queries if text.startswith("use `d`; ")]


@pytest.mark.parametrize("change", _CHANGES)
def test_the_parser_sees_what_the_server_has_executed(server: MariaDbServer | MySqlServer, change: str) -> None:
    mariadb = isinstance(server, MariaDbServer)
    differences, compared = [], 0
    with closing(server.database("d").connect()) as connection, closing(connection.cursor()) as cursor:
        for number, (opening, form) in enumerate((opening, form) for opening in _OPENINGS for form in _FORMS):
            table, tables = f"t{number}", Tables(mariadb=mariadb)
            cursor.execute(f"drop table if exists {table}")
            for text in (form, change):
                closed = text.format(t=table, open=opening, close="*/")
                logged = _logged(cursor, closed, mariadb=mariadb)
                if logged is None:
                    break
                compared += 1
                unread = [each for sql in logged for each in apply_statement(tables, sql, "d").unread]
                found = tables.get(TableId("d", table))
                names = None if found is None else [column.name for column in found.columns]
                if names != _columns(cursor, table) and not unread:
                    differences.append((closed, logged, names, _columns(cursor, table)))
                if unread:
                    break
            cursor.execute(f"drop table if exists {table}")
    assert not differences
    assert compared > len(_OPENINGS)
