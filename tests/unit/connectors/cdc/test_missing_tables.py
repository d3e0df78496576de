"""Names of ``table.include.list`` that the database does not have are shown: written-out ones as a wait, others in the log."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc import missing_tables
from sluiceway.connectors.cdc.filters import TableId
from sluiceway.connectors.cdc.keys import OVERRIDES
from sluiceway.connectors.cdc.missing_tables import MissingTables
from sluiceway.runtime.waits import Waits

TABLES = [TableId("public", "orders"), TableId("public", "customers")]


def _checked(include: str) -> tuple[MissingTables, Waits]:
    waits = Waits()
    missing = MissingTables({"name": "c", "table.include.list": include}, waits.waiting)
    assert missing.due()
    missing.check(TABLES)
    return missing, waits


@pytest.mark.parametrize(
    ("include", "logged", "awaited"),
    [
        ("", None, None),
        ("public.orders", None, None),
        (r"public\.orders", None, None),
        ("PUBLIC.ord.*", None, None),
        ("public.ordrs", "public.ordrs", "public.ordrs"),
        (r"public\.ordrs", r"public\.ordrs", r"public\.ordrs"),
        ("public.my-table 2", "public.my-table 2", "public.my-table 2"),
        ("orders, public.customers, public.o{3}", "orders, public.o{3}", "orders"),
        ("public.ordrs.*", "public.ordrs.*", None),
        (r"public\.\w+s, public\.x\w+", r"public\.x\w+", None),
        ("public.(a|b)", "public.(a|b)", None),
    ],
)
def test_a_name_that_is_written_out_is_awaited_and_an_expression_is_logged(
    include: str, logged: str | None, awaited: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    missing, waits = _checked(include)
    expected = f"[c] table.include.list: no table fits {logged}. Check the name, which has the schema or database, and the "
    assert [message.startswith(expected) for message in caplog.messages] == ([] if logged is None else [True])
    error = waits.refused()
    assert (error is None) == (awaited is None)
    assert awaited is None or f"no table fits {awaited}. " in str(error)
    missing.check(TABLES)
    assert len(caplog.messages) == (0 if logged is None else 1), "the log has it once"


def test_a_missing_table_with_a_statement_of_its_own_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    missing = MissingTables({"name": "c", OVERRIDES: "public.orders,public.ordrs"}, lambda *_: None)
    assert missing.concerns("public")
    missing.check(TABLES)
    assert [each.partition(". ")[0] for each in caplog.messages] == [f"[c] {OVERRIDES}: no table fits public.ordrs"]


def test_the_wait_ends_when_the_last_table_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(missing_tables, "_SECONDS", 1e-9)
    missing, waits = _checked("public.orders,public.late,public.later")
    assert "no table fits public.late, public.later. " in (waits.text or "")
    assert missing.due()
    missing.check([*TABLES, TableId("public", "late")])
    assert "no table fits public.later. " in (waits.text or "")
    missing.check([*TABLES, TableId("public", "late"), TableId("public", "later")])
    assert (waits.text, waits.refused(), missing.due()) == (None, None, False)


@pytest.mark.parametrize(("include", "first"), [("Shop.orders,hr.people", False), ("shop.orders,hr.p.*", True)])
def test_only_databases_that_can_have_a_missing_table_are_read(include: str, first: bool) -> None:
    missing = MissingTables({"table.include.list": include}, lambda *_: None)
    assert (missing.concerns("shop"), missing.concerns("other")) == (True, first)
    missing.check([])
    assert (missing.concerns("SHOP"), missing.concerns("other")) == (True, False)
