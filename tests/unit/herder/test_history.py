"""Configs restored from a connector's history."""

from __future__ import annotations

import pytest

from sluiceway.errors import BadRequestError, NotFoundError
from sluiceway.herder.history import config_of
from sluiceway.storage.history import ChangeKind, HistoryChange, Origin

URL = "jdbc:x://[hidden]@h/db"
CHANGES = [
    HistoryChange(ChangeKind.CONFIG, Origin(), {"a": "1", "pw": "[hidden]", "url": URL}, version=3),
    HistoryChange(ChangeKind.STATE, Origin(), state=("STARTED", "STOPPED"), version=4),
    HistoryChange(ChangeKind.CONFIG, Origin(), version=5),
    HistoryChange(ChangeKind.CONFIG, Origin(), {"a": "2"}, version=6),
]
CURRENT = {"pw": "new", "url": "jdbc:x://u:p@h/db"}


@pytest.mark.parametrize("version", [3, 4])
def test_the_config_of_a_version_has_the_current_secrets(version: int) -> None:
    assert config_of("c", CHANGES, version, CURRENT) == {"a": "1", "pw": "new", "url": "jdbc:x://u:p@h/db"}


def test_a_secret_of_another_value_is_not_taken() -> None:
    with pytest.raises(BadRequestError, match="none for url"):
        config_of("c", CHANGES, 3, CURRENT | {"url": "jdbc:x://u:p@elsewhere/db"})
    with pytest.raises(BadRequestError, match="none for pw, url"):
        config_of("c", CHANGES, 3, {})


def test_versions_without_a_config_are_refused() -> None:
    with pytest.raises(BadRequestError, match="was deleted in version 5"):
        config_of("c", CHANGES, 5, {})
    with pytest.raises(BadRequestError, match="not in its history any more"):
        config_of("c", CHANGES[1:], 4, {})
    with pytest.raises(NotFoundError, match="no version 9"):
        config_of("c", CHANGES, 9, {})
    with pytest.raises(NotFoundError, match="No change of it is recorded"):
        config_of("c", [], 9, {})
