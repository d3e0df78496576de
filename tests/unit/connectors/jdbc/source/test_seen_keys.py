"""Finding deleted rows."""

from __future__ import annotations

from sluiceway.connectors.jdbc.source.seen_keys import SeenKeys


def test_deleted_keys_are_found_once() -> None:
    seen = SeenKeys()
    seen.add([(1,), (2,), (3,)])
    assert list(seen.missing()) == []
    seen.add([(4,)])  # a row read between two scans
    seen.add([(1,), (4,)])
    assert sorted(key for keys in seen.missing() for key in keys) == [(2,), (3,)]
    seen.add([(1,)])
    assert list(seen.missing()) == [[(4,)]]
    seen.close()
