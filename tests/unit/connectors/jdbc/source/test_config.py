"""Conflicting keys of the source."""

from __future__ import annotations

import pickle

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
