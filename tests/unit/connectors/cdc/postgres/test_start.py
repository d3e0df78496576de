"""The first reads of a task, and gaps in the log."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pytest

from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.replication import ServerIdentity, Slot, ensure_publication, parse_history
from sluiceway.connectors.cdc.postgres.source import Position, moved_offset
from sluiceway.connectors.cdc.postgres.start import LogLostError, check_slot_position, find_gap, plan_start
from sluiceway.errors import ConnectError

_CONFIG = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.password": "x", "database.dbname": "d"}
_SLOT = Slot(active=False, restart_lsn=1, confirmed_lsn=9, lost="")
_SERVER = ServerIdentity("77", 1, 0x100, ())
_STREAMED = {"lsn": 9, "lsn_proc": 9, "lsn_commit": 8, "txId": 3, "ts_usec": 0}
_BROKEN = {"lsn": 9, "snapshot": "INITIAL", "snapshot_completed": False}
_GAP = "Changes are missing."


@pytest.mark.parametrize(
    ("mode", "offset", "gap", "snapshot", "stream"),
    [
        ("initial", None, None, True, True),
        ("initial", _STREAMED, None, False, True),
        ("initial", _BROKEN, None, True, True),
        ("always", _STREAMED, None, True, True),
        ("always", _STREAMED, _GAP, True, True),
        ("initial_only", None, None, True, False),
        ("initial_only", {**_BROKEN, "snapshot_completed": True}, None, False, False),
        ("no_data", None, None, False, True),
        ("when_needed", _STREAMED, _GAP, True, True),
        ("when_needed", _STREAMED, None, False, True),
        ("configuration_based", _STREAMED, _GAP, False, False),
    ],
)
def test_modes(mode: str, offset: dict[str, object] | None, gap: str | None, snapshot: bool, stream: bool) -> None:
    plan = plan_start(postgres_config({**_CONFIG, "snapshot.mode": mode}), offset, gap)
    assert (plan.snapshot, plan.stream) == (snapshot, stream)


def test_the_log_goes_on_behind_the_last_transaction_that_was_stored() -> None:
    plan = plan_start(postgres_config(_CONFIG), _STREAMED)
    assert plan.position is not None
    assert plan.position.start_lsn == 8


def test_a_custom_snapshotter_is_refused() -> None:
    with pytest.raises(ConnectError, match="Choose another mode"):
        plan_start(postgres_config({**_CONFIG, "snapshot.mode": "custom"}), None)


def test_a_publication_that_must_exist_and_does_not_is_named_with_its_keys() -> None:
    server: Any = SimpleNamespace(execute=lambda *_: SimpleNamespace(fetchone=lambda: None))
    config = postgres_config({**_CONFIG, "publication.name": "sho", "publication.autocreate.mode": "disabled"})
    with pytest.raises(
        ConnectError, match=r"Publication sho does not exist, and publication\.autocreate\.mode=.* publication\.name"
    ):
        ensure_publication(server, config, [])


@pytest.mark.parametrize("mode", ["initial", "no_data"])
def test_a_gap_is_an_error_with_the_position_and_what_to_do(mode: str) -> None:
    with pytest.raises(LogLostError, match=r"lsn=LSN\{0/9\}, txId=3.*no longer available on the server.*missing.*when_needed"):
        plan_start(postgres_config({**_CONFIG, "snapshot.mode": mode}), _STREAMED, _GAP)


@pytest.mark.parametrize(
    ("slot", "server", "before", "gap"),
    [
        (_SLOT, _SERVER, None, None),
        (_SLOT, _SERVER, _SERVER, None),
        (None, _SERVER, None, "does not exist. Changes from 0/8 to 0/100 \\(248 bytes"),
        (_SLOT._replace(lost="wal_removed"), _SERVER, None, "given up.*wal_removed.*248 bytes"),
        (_SLOT._replace(restart_lsn=0x20), _SERVER, None, "created again.*24 bytes"),
        (_SLOT, _SERVER._replace(lsn=5), None, "3 bytes ahead of the end.*0/5.*backup"),
        (_SLOT, _SERVER._replace(system="78"), _SERVER, "another database cluster"),
        (_SLOT, _SERVER._replace(timeline=2, switches=((1, 6),)), _SERVER, "timeline 2.*left timeline 1 at 0/6.*2 bytes further"),
        (_SLOT, _SERVER._replace(timeline=2, switches=((1, 8),)), _SERVER, None),
        (_SLOT._replace(confirmed_lsn=5), _SERVER._replace(timeline=2, switches=((1, 6),)), None, "left timeline 1"),
        (_SLOT, _SERVER._replace(timeline=2, switches=((1, 6),)), None, None),  # the slot was read on the new timeline
    ],
)
def test_gaps(slot: Slot | None, server: ServerIdentity, before: ServerIdentity | None, gap: str | None) -> None:
    found = find_gap(postgres_config(_CONFIG), Position.of(_STREAMED), slot, server, before)
    if gap is None:
        assert found is None
    else:
        assert found is not None
        assert re.search(gap, found)


@pytest.mark.parametrize(("strategy", "warns"), [("no_validation", True), ("trust_slot", False), ("trust_offset", None)])
def test_a_slot_ahead_of_the_offset(strategy: str, warns: bool | None) -> None:
    config, position = postgres_config({**_CONFIG, "offset.mismatch.strategy": strategy}), Position.of(_STREAMED)
    assert check_slot_position(config, position, _SLOT) is None
    ahead = _SLOT._replace(confirmed_lsn=11)
    if warns is None:
        with pytest.raises(LogLostError, match="2 bytes of log ahead"):
            check_slot_position(config, position, ahead)
    else:
        assert (check_slot_position(config, position, ahead) is not None) == warns


def test_timelines_of_a_history_file() -> None:
    assert parse_history("1\t0/3000158\tno recovery target\n\n2\t1/10\tpromoted\n") == ((1, 0x3000158), (2, 0x100000010))


@pytest.mark.parametrize("offset", [_STREAMED, {**_BROKEN, "snapshot_completed": True}])
def test_a_moved_offset_keeps_its_form(offset: dict[str, object]) -> None:
    moved = moved_offset({**offset, "lsn_events_processed": 2}, 50)
    assert set(moved) == set(offset)
    assert Position.of(moved).start_lsn == 50
