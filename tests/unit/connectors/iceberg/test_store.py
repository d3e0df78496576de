"""Tables that two tasks create at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.exceptions import CommitFailedException

from sluiceway.errors import ConnectError
from support.table_sink import Lake

_COLUMNS = pa.schema([pa.field("id", pa.int64())])


def _store(lake: Lake, name: str) -> Any:
    return lake.connector.store_of(lake.connector.options_of(lake.config(name)))


def test_a_table_that_another_task_creates_meanwhile_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake("iceberg", tmp_path)
    first, second = (_store(lake, name) for name in ("first", "second"))
    catalog = first.catalog
    begin = catalog.create_table_transaction

    def begin_before_the_other(*arguments: Any, **options: Any) -> Any:
        transaction = begin(*arguments, **options)
        second.create("db.t", _COLUMNS, [], [])
        return transaction

    monkeypatch.setattr(catalog, "create_table_transaction", begin_before_the_other)
    table = first.create("db.t", _COLUMNS, [], [])
    other = second.table("db.t")
    assert other is not None
    assert table._table.metadata.table_uuid == other._table.metadata.table_uuid


def test_a_table_that_cannot_be_created_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lake = Lake("iceberg", tmp_path)
    store = _store(lake, "sink")

    def refuse(*_arguments: Any, **_options: Any) -> Any:
        raise CommitFailedException("not allowed")

    monkeypatch.setattr(store.catalog, "create_table_transaction", refuse)
    with pytest.raises(ConnectError, match=r"Creating table db\.t.*not allowed"):
        store.create("db.t", _COLUMNS, [], [])
