"""What a task reads first."""

from __future__ import annotations

import pytest

from sluiceway.connectors.cdc.postgres.config import postgres_config
from sluiceway.connectors.cdc.postgres.replication import Slot
from sluiceway.connectors.cdc.postgres.source import Position
from sluiceway.connectors.cdc.postgres.start import LogLostError, check_log_available, plan_start
from sluiceway.errors import ConnectError

_CONFIG = {"topic.prefix": "p", "database.hostname": "h", "database.user": "u", "database.password": "x", "database.dbname": "d"}
_SLOT = Slot(active=False, restart_lsn=1, confirmed_lsn=2, lost=False)
_STREAMED = {"lsn": 9, "lsn_proc": 9, "lsn_commit": 8, "txId": 3, "ts_usec": 0}
_BROKEN = {"lsn": 9, "snapshot": "INITIAL", "snapshot_completed": False}


@pytest.mark.parametrize(
    ("mode", "offset", "slot", "snapshot", "stream"),
    [
        ("initial", None, None, True, True),
        ("initial", _STREAMED, _SLOT, False, True),
        ("initial", _BROKEN, _SLOT, True, True),
        ("always", _STREAMED, _SLOT, True, True),
        ("initial_only", None, None, True, False),
        ("initial_only", {**_BROKEN, "snapshot_completed": True}, None, False, False),
        ("no_data", None, None, False, True),
        ("when_needed", _STREAMED, None, True, True),
        ("when_needed", _STREAMED, _SLOT, False, True),
    ],
)
def test_modes(mode: str, offset: dict[str, object] | None, slot: Slot | None, snapshot: bool, stream: bool) -> None:
    plan = plan_start(postgres_config({**_CONFIG, "snapshot.mode": mode}), offset, slot)
    assert (plan.snapshot, plan.stream) == (snapshot, stream)


def test_the_log_goes_on_behind_the_last_transaction_that_was_stored() -> None:
    plan = plan_start(postgres_config(_CONFIG), _STREAMED, _SLOT)
    assert plan.position is not None
    assert plan.position.start_lsn == 8


def test_a_custom_snapshotter_is_refused() -> None:
    with pytest.raises(ConnectError, match="Choose another mode"):
        plan_start(postgres_config({**_CONFIG, "snapshot.mode": "custom"}), None, None)


def test_a_lost_slot_is_an_error_with_the_position() -> None:
    with pytest.raises(LogLostError, match=r"lsn=LSN\{0/9\}, txId=3.*no longer available on the server"):
        check_log_available(postgres_config(_CONFIG), _STREAMED, Position.of(_STREAMED))
