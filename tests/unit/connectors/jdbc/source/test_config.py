"""Conflicting keys of the source."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

import pytest

from sluiceway.connectors.jdbc.source.config import source_config
from sluiceway.errors import ConfigError


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"mode": ""}, "mode"),
        ({"mode": "timestamp"}, "timestamp.column.name"),
        ({"mode": "bulk", "incrementing.column.name": "id"}, "does not go with mode=bulk"),
        ({"mode": "bulk", "query": "select 1", "table.whitelist": "t"}, "does not go with"),
        ({"mode": "bulk", "table.whitelist": "t", "table.blacklist": "u"}, "does not go with"),
        ({"mode": "bulk", "db.timezone": "Nowhere/City"}, "time zone"),
        ({"mode": "bulk", "table.include.list": "("}, "regular expression"),
    ],
)
def test_conflicting_keys_are_refused(more: dict[str, str], message: str) -> None:
    config = {"connection.url": "jdbc:sqlite:x", "topic.prefix": "t", **more}
    with pytest.raises(ConfigError, match=message) as caught:
        source_config(config)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


def test_a_database_file_that_does_not_exist_is_an_error_and_is_not_made(tmp_path: Path) -> None:
    from sluiceway.connectors.jdbc.source.connector import JdbcSourceConnector

    config = {"name": "s", "mode": "bulk", "topic.prefix": "t-", "connection.url": f"jdbc:sqlite:{tmp_path}/shpo.db"}
    [error] = JdbcSourceConnector.validate(config)["connection.url"].errors
    assert f"The database file {tmp_path}/shpo.db does not exist. Check connection.url" in error
    assert list(tmp_path.iterdir()) == []
    sqlite3.connect(tmp_path / "shop.db").close()
    config["connection.url"] = f"jdbc:sqlite:{tmp_path}/shop.db"
    assert JdbcSourceConnector.validate(config)["connection.url"].errors == []
