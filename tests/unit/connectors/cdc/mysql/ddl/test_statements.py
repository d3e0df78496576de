"""The model follows DDL as Debezium's records show, and gives up on what it does not understand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.mysql.ddl.model import TableDefinition, Tables
from sluiceway.connectors.cdc.mysql.ddl.statements import ChangeType, apply_statement
from sluiceway.connectors.cdc.mysql.ddl.table_changes import change_documents, parse_id, quoted_id, read_table, table_document
from support import ddl_grammar

GIVEN = sorted((Path(__file__).parents[5] / "cdc" / "kit" / "given").glob("my_*.json"))
T = TableId("db", "t")


def _tables(*statements: str) -> Tables:
    tables = Tables(server_charset="utf8mb4", keep_comments=True)
    for sql in statements:
        apply_statement(tables, sql, "db")
    return tables


def _table(*statements: str) -> TableDefinition:
    table = _tables(*statements).get(T)
    assert table is not None
    return table


def _names(table: TableDefinition) -> list[str]:
    return [column.name for column in table.columns]


@pytest.mark.parametrize("file", GIVEN, ids=lambda file: file.stem)
def test_table_changes_are_those_that_debezium_recorded(file: Path) -> None:
    tables = Tables()
    for record in json.loads(file.read_text())["expect"]["records"]:
        if record["topic"].startswith("schemahistory"):
            recorded = record["value"]["json"]
            outcome = apply_statement(tables, recorded["ddl"], recorded["databaseName"])
            found = [document for change in outcome.changes for document in change_documents(change)]
            assert json.dumps(found) == json.dumps(recorded["tableChanges"])
            assert not outcome.unread


def test_there_are_recordings() -> None:
    assert len(GIVEN) > 60


def test_columns_with_all_kinds_of_attributes() -> None:
    table = _table(
        "create table t (id serial, `a``b` varchar(10) collate latin1_bin not null default 'x' comment 'c', "
        "c int generated always as (id + 1) virtual check (c > 0), d decimal unsigned default -1.5, "
        "e enum('a,b','c') default 'c', f timestamp default now() on update current_timestamp(3), "
        "g national varchar(5), index (c), key k (`a``b`(3)), constraint fk foreign key (c) references x(y) on delete cascade)"
    )

    assert _names(table) == ["id", "a`b", "c", "d", "e", "f", "g"]
    assert table.primary_key == ("id",)
    by_name = {column.name: column for column in table.columns}
    assert (by_name["id"].type_name, by_name["id"].auto_incremented, by_name["id"].optional) == ("BIGINT UNSIGNED", True, False)
    assert (by_name["a`b"].charset, by_name["a`b"].default, by_name["a`b"].comment) == ("latin1", "x", "c")
    assert (by_name["d"].type_name, by_name["d"].length, by_name["d"].scale, by_name["d"].default) == (
        "DECIMAL UNSIGNED",
        10,
        0,
        "-1.5",
    )
    assert by_name["e"].enum_values == ("'a,b'", "'c'")
    assert by_name["f"].default == "1970-01-01 00:00:00"
    assert (by_name["g"].type_name, by_name["g"].charset) == ("NATIONAL VARCHAR", "utf8")


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        ("alter table t drop column b, add (x int, y int)", ["a", "c", "x", "y"]),
        ("alter table t change b z bigint first", ["z", "a", "c"]),
        ("alter table db.t modify c int after a", ["a", "c", "b"]),
        ("alter table t rename column a to q, add index (b), drop foreign key fk", ["q", "b", "c"]),
        ("alter table t add column if not exists b int, add d int /* new */ -- comment", ["a", "b", "c", "d"]),
        ("alter table t engine=InnoDB, comment='x', auto_increment = 5", ["a", "b", "c"]),
        ("alter table t add constraint u unique key (b), order by a", ["a", "b", "c"]),
        ("/*!40000 alter table t disable keys */", ["a", "b", "c"]),
        ("alter table t add partition (partition p9 values less than (9))", ["a", "b", "c"]),
        ("set statement max_statement_time=1 for alter table t drop c", ["a", "b"]),
    ],
)
def test_alter_table(statement: str, columns: list[str]) -> None:
    assert _names(_table("create table t (a int primary key, b int, c int)", statement)) == columns


@pytest.mark.parametrize(
    ("statement", "columns", "key"),
    [
        ("rename column a to b, rename column b to a", ["b int", "a bigint", "c char"], ["b", "a"]),
        ("change a b smallint, change b a date after c", ["b smallint", "c char", "a date"], ["b", "a"]),
        ("rename column a to b, rename column b to c, rename column c to a", ["b int", "c bigint", "a char"], ["b", "c"]),
        ("rename column a to b, drop b", ["b int", "c char"], ["b"]),
        ("drop b, rename column a to b", ["b int", "c char"], ["b"]),
        ("add b date first, drop b", ["b date", "a int", "c char"], ["a"]),
        ("add b date, change b bb int, add d int after b", ["a int", "bb int", "c char", "b date", "d int"], ["a", "bb"]),
        ("rename column A to B, rename column B to A", ["B int", "A bigint", "c char"], ["B", "A"]),
        (
            "drop primary key, add primary key (b), rename column a to b, rename column b to a",
            ["b int", "a bigint", "c char"],
            ["b"],
        ),
        ("add d int, modify d date first", ["d date", "a int", "b bigint", "c char"], ["a", "b"]),
        ("add column if not exists (b date, d date)", ["a int", "b bigint", "c char", "d date"], ["a", "b"]),
    ],
)
def test_a_statement_means_columns_by_their_names_before_it(statement: str, columns: list[str], key: list[str]) -> None:
    """The columns and keys are those of MariaDB 10.11 and MySQL 9.7 after these statements."""
    table = _table("create table t (a int, b bigint, c char, primary key (a, b))", f"alter table t {statement}")

    assert [f"{column.name} {column.type_name.lower()}" for column in table.columns] == columns
    assert list(table.primary_key) == key
    assert {type(name) for name in (*table.primary_key, *_names(table))} == {str}


def test_a_period_in_a_key_stands_for_its_columns_which_may_follow() -> None:
    """MariaDB's index has the last column of the period before the first."""
    table = _table("create table t (id int, primary key (id, p without overlaps), s date, e date, period for p (s, e))")

    assert table.primary_key == ("id", "e", "s")
    assert [column.optional for column in table.columns] == [False, False, False]


def test_renames_keep_the_definition_and_name_the_table_before() -> None:
    tables = _tables("create table t (a int)", "create table u (b int)")

    outcome = apply_statement(tables, "rename table t to x.t2, u to t", "db")

    assert [(change.table, change.previous) for change in outcome.changes] == [(TableId("x", "t2"), T), (T, TableId("db", "u"))]
    assert outcome.changes[1].ddl == "rename table u to t"
    assert tables.get(TableId("db", "u")) is None
    assert change_documents(outcome.changes[0])[0]["previousId"] == '"db"."t"'


def test_drops_have_one_change_a_table() -> None:
    tables = _tables("create table t (a int)")

    outcome = apply_statement(tables, "drop table if exists t, `x`.`y`", "db")

    assert [(change.type, change.ddl) for change in outcome.changes] == [
        (ChangeType.DROP, "drop table if exists `db`.`t`"),
        (ChangeType.DROP, "drop table if exists `x`.`y`"),
    ]
    assert not tables.tables


def test_the_charset_of_a_database_is_that_of_its_tables() -> None:
    table = _table("create database db charset latin2", "create table t (a text, b text charset ascii)")

    assert [column.charset for column in table.columns] == ["latin2", "ascii"]


def test_converted_tables_change_the_charset_of_all_columns() -> None:
    table = _table("create table t (a text charset latin1, b int)", "alter table t convert to character set utf8mb4")

    assert [column.charset for column in table.columns] == ["utf8mb4", None]


def test_comments_are_left_out_unless_they_are_kept() -> None:
    tables = Tables()
    apply_statement(tables, "create table t (a int comment 'x') comment 'y'", "db")
    table = tables.get(T)

    assert table is not None
    assert (table.comment, table.columns[0].comment) == (None, None)


def test_a_table_like_another() -> None:
    assert _names(_table("create table o (a int, b int)", "create table t like o")) == ["a", "b"]


@pytest.mark.parametrize("sql", ["create table t (a new_type(5))", "create table t as select 1", "create table t (a int"])
def test_a_table_that_is_not_understood_is_to_be_read_from_the_server(sql: str) -> None:
    outcome = apply_statement(Tables(), sql, "db")

    assert outcome.unread == (T,)
    assert outcome.changes[0].definition is None


@pytest.mark.parametrize("sql", ["create view v as select 1", "grant all on *.* to x", "create sequence s", "nonsense", ""])
def test_other_statements_change_nothing(sql: str) -> None:
    assert not apply_statement(Tables(), sql, "db").changes


def test_documents_are_read_back() -> None:
    table = _table("create table t (a decimal(5,2) not null default 1.5 comment 'x', e set('a') , primary key (a))")

    assert read_table(T, table_document(table)) == table


def test_ids_are_quoted() -> None:
    table = TableId("d", 'x"."y')

    assert quoted_id(T) == '"db"."t"'
    assert parse_id(quoted_id(TableId("d", 'q"'))) == TableId("d", 'q"')
    assert quoted_id(table) == '"d"."x"".""y"'


_READ_AGAIN = (
    "modify b int after b",
    "modify column if exists nope",
    "alter column if exists nope",
    "convert to character set binary",
    "change column if exists",
    "rename column if exists",
    "select 1",
)


def test_each_clause_of_the_grammar_is_understood() -> None:
    unread = [sql for create, sql in ddl_grammar.statements() if apply_statement(_tables(create), sql, "db").unread]

    assert [sql for sql in unread if not any(words in sql for words in _READ_AGAIN)] == []


@pytest.mark.parametrize("unknown", ddl_grammar.UNKNOWN)
def test_an_unknown_clause_is_never_lost(unknown: str) -> None:
    """It stands for a clause of a later version: behind the table's name, behind the statement, and as one of several."""
    lost = []
    for create, statement in ddl_grammar.statements():
        start, name, rest = statement.partition(" t ")
        variants = [] if _takes_the_rest(statement) else [f"{statement}, {unknown}"]
        if name and "alter" in start.lower():
            variants += [f"{start} t {unknown} {rest}", f"{start} t {unknown}, {rest}"]
        lost += [sql for sql in variants if T not in apply_statement(_tables(create), sql, "db").unread]

    assert lost == []


def _takes_the_rest(statement: str) -> bool:
    """Whether what follows cannot change a column: an index's or a partition's clause, or a statement without columns."""
    return "partition" in statement or statement.startswith(("create ", "drop ", "optimize")) or "order by" in statement


@pytest.mark.parametrize("word", ["frobnicate", "wait forever", "limit 5"])
@pytest.mark.parametrize("statement", ["drop table t", "truncate table t", "rename table t to u", "alter table t rename u"])
def test_unknown_words_behind_other_statements_are_never_lost(statement: str, word: str) -> None:
    assert T in apply_statement(_tables("create table t (a int)"), f"{statement} {word}", "db").unread


@pytest.mark.parametrize("name", ["t", "`t`", '"t"', "db.t", '"db"."t"', "db . `t`"])
def test_an_unknown_clause_is_told_of_a_table_with_any_quotes(name: str) -> None:
    assert apply_statement(_tables("create table t (a int)"), f"alter table {name} frobnicate", "db").unread == (T,)


@pytest.mark.parametrize(
    ("comment", "mariadb", "mysql"),
    [
        ("/*! c int, */", True, True),
        ("/*!50100 c int, */", True, True),
        ("/*!100301 c int, */", True, True),
        ("/*!50100c int, */", True, True),
        ("/*M! c int, */", True, False),
        ("/*M!100301 c int, */", True, False),
        ("/*M!100301 c int comment '/*', */", True, False),
        ("/* 99999 c int, */", False, False),
        ("/*m! c int, */", False, False),
        ("/*M c int, */", False, False),
        ("/*+ c int, */", False, False),
    ],
)
def test_executable_comments_count_on_the_server_that_executes_them(comment: str, mariadb: bool, mysql: bool) -> None:
    for is_mariadb, executes in ((True, mariadb), (False, mysql)):
        tables = Tables(mariadb=is_mariadb)
        assert not apply_statement(tables, f"create table t (a int, {comment} b int)", "db").unread
        found = tables.tables[T]
        assert [column.name for column in found.columns] == ["a", *(["c"] if executes else []), "b"]


_IN_CASES = (
    "create database Shop charset latin1",
    "CREATE TABLE Shop.T (a int primary key, b varchar(5))",
    "alter table SHOP.t add C int",
    "rename table shop.T to Shop.U",
    "alter table shop.u drop column b, rename Shop.Other",
    "create table SHOP.X like shop.OTHER",
    "create unique index I on Shop.x (C)",
)


def test_names_in_any_letter_case_mean_one_table_of_a_server_with_lower_case() -> None:
    tables = Tables(lower_case=True)
    for sql in _IN_CASES:
        assert not apply_statement(tables, sql, "Shop").unread, sql

    assert {str(table): [column.name for column in each.columns] for table, each in tables.tables.items()} == {
        "shop.other": ["a", "C"],
        "shop.x": ["a", "C"],
    }
    assert tables.charset("shop") == "latin1"
    assert apply_statement(tables, "alter table OTHER frobnicate", "SHOP").unread == (TableId("shop", "other"),)
    assert apply_statement(tables, "drop table X", "SHOP").changes[0].table == TableId("shop", "x")
    apply_statement(tables, "drop database SHOP", "")
    assert tables.tables == {}
    assert tables.empty({"a": "utf8mb4"}) == Tables(charsets={"a": "utf8mb4"}, lower_case=True)


def test_other_servers_tell_names_by_their_letter_case() -> None:
    tables = _tables("create table t (a int)")
    assert apply_statement(tables, "alter table T add b int", "db").changes == ()
    assert tables.tables[T].column("b") is None
