"""The history of a connector, and its records in the topic."""

from __future__ import annotations

import json

import pytest

from sluiceway.storage.history import (
    KEPT,
    ChangeKind,
    History,
    HistoryChange,
    Origin,
    config_change,
    deletion,
    headers_of,
    offsets_change,
    state_change,
)
from sluiceway.storage.model import ConnectorEntry, TargetState

ALICE = Origin("alice", True, "10.0.0.7", "sluiceway/1", None)
CONFIG = {"connector.class": "X", "topic": "t", "db.pw": "hunter2", "token": "abc", "other": "${file:/s:key}"}
STARTED, STOPPED = TargetState.STARTED, TargetState.STOPPED


def changed(before: dict[str, str] | None, after: dict[str, str]) -> HistoryChange | None:
    entry = None if before is None else ConnectorEntry("c", before)
    return config_change(entry, after, None, ALICE, {"db.pw"})


def record(history: History, name: str, change: HistoryChange, timestamp: int = 5) -> list[HistoryChange]:
    numbered = history.numbered(name, change)
    for key, value in history.records(name, numbered):
        history.apply(key, value, timestamp)
    return numbered


def test_a_new_connector_is_recorded_without_its_secrets() -> None:
    made = changed(None, CONFIG)
    assert made is not None
    assert made.config == CONFIG | {"db.pw": "[hidden]", "token": "[hidden]"}
    assert (made.what, made.state, made.edits) == ("created", (None, "STARTED"), {})


def test_a_changed_secret_is_recorded_as_changed_but_not_shown() -> None:
    made = changed(CONFIG, CONFIG | {"db.pw": "swordfish", "topic": "u"})
    assert made is not None
    assert made.edits == {"topic": ("t", "u"), "db.pw": ("[hidden]", "[hidden]")}
    history = History()
    numbered = record(history, "c", made)
    stored = b"".join(value or b"" for _, value in history.records("c", numbered))
    assert b"topic" in stored
    assert not any(secret in stored for secret in (b"hunter2", b"swordfish", b"abc"))


def test_what_another_class_had_in_its_keys_may_be_secret() -> None:
    made = changed(CONFIG | {"own.key": "hunter2"}, {"connector.class": "Y", "topic": "u"})
    assert made is not None
    assert (made.previous, made.edits["own.key"], made.edits["topic"]) == (None, (None, None), (None, "u"))


def test_a_change_that_changes_nothing_is_not_recorded() -> None:
    entry = ConnectorEntry("c", CONFIG)
    assert changed(CONFIG, CONFIG) is None
    assert state_change(entry, STARTED, ALICE) is None
    assert deletion(None, ALICE) is None
    assert offsets_change([({"p": 1}, {"o": 1}, {"o": 1})], ALICE) is None


def test_versions_count_the_changes_of_each_connector() -> None:
    history = History()
    stopped = state_change(ConnectorEntry("c", CONFIG), STOPPED, ALICE)
    made = changed(None, CONFIG)
    assert made is not None
    assert stopped is not None
    record(history, "c", made)
    record(history, "other", made)
    record(history, "c", stopped, timestamp=9)
    first, second = history.changes("c")
    assert (first.version, second.version, second.timestamp) == (1, 2, 9)
    assert (second.state, second.origin, second.what) == (("STARTED", "STOPPED"), ALICE, "state")
    assert first.config == made.config
    assert [each.version for each in history.changes("other")] == [1]


def test_the_history_of_an_older_connector_begins_with_the_config_that_it_had() -> None:
    history = History()
    made = changed(CONFIG, CONFIG | {"topic": "u"})
    assert made is not None
    record(history, "c", made)
    before, after = history.changes("c")
    assert (before.version, before.config, before.origin.user) == (1, CONFIG | {"db.pw": "[hidden]", "token": "[hidden]"}, None)
    assert (after.version, after.edits) == (2, {"topic": ("t", "u")})


def test_only_the_newest_changes_of_each_kind_are_kept_and_numbers_are_not_used_again() -> None:
    history = History()
    for number in range(KEPT + 3):
        record(history, "c", HistoryChange(ChangeKind.CONFIG, ALICE, {"n": str(number)}))
    record(history, "c", HistoryChange(ChangeKind.STATE, ALICE, state=("STARTED", "STOPPED")))
    changes = history.changes("c")
    assert len(changes) == KEPT + 1
    assert (changes[0].version, changes[-1].version) == (4, KEPT + 4)


def test_a_change_of_many_offsets_records_some_of_them() -> None:
    made = offsets_change([({"p": n}, None, {"o": n}) for n in range(501)], ALICE)
    assert made is not None
    assert (len(made.offsets), made.partitions) == (500, 501)
    history = History()
    record(history, "c", made)
    assert history.changes("c")[0].offsets[1] == ({"p": 1}, None, {"o": 1})


@pytest.mark.parametrize("key", [None, b"", b"x", b'["c"]', b'["c","1"]', b"[1,2]"])
def test_records_of_others_are_ignored(key: bytes | None) -> None:
    history = History()
    history.apply(key, b"{}", 0)
    history.apply(b'["c",1]', b"[]", 0)
    history.apply(b'["c",1]', json.dumps({"kind": "unknown"}).encode(), 0)
    assert history.changes("c") == []


def test_headers_name_who_made_the_change() -> None:
    [change] = History().numbered("c", HistoryChange(ChangeKind.CONFIG, ALICE))
    assert headers_of(change) == [
        ("sluiceway.version", b"1"),
        ("sluiceway.user", b"alice"),
        ("sluiceway.address", b"10.0.0.7"),
        ("sluiceway.client", b"sluiceway/1"),
    ]
