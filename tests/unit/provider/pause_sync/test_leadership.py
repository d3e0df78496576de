"""Tests of the lock that elects the process of the pause sync."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy

from sluiceway.provider.pause_sync.leadership import DatabaseLeadership, FileLeadership, leadership

_HOLD = """
import sys
from pathlib import Path
from sluiceway.provider.pause_sync.leadership import FileLeadership
held = FileLeadership(Path(sys.argv[1]))
print(held.held(), flush=True)
sys.stdin.read()
"""


def test_one_process_holds_the_lock_until_it_ends_even_if_killed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    leader = subprocess.Popen([sys.executable, "-c", _HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert leader.stdout is not None
    try:
        assert leader.stdout.readline().strip() == "True"
        second = FileLeadership(path)
        assert not second.held()
    finally:
        leader.kill()
        leader.communicate()
    assert second.held()
    assert second.held()
    second.release()


def test_a_released_lock_can_be_taken(tmp_path: Path) -> None:
    first, second = FileLeadership(tmp_path / "lock"), FileLeadership(tmp_path / "lock")
    assert first.held()
    assert not second.held()
    first.release()
    assert second.held()
    second.release()


def test_two_connect_clusters_in_one_airflow_have_a_lock_each(tmp_path: Path) -> None:
    engine = sqlalchemy.create_engine("sqlite://")
    one, other, same = (leadership(engine, tmp_path, key) for key in ("one", "other", "one"))
    assert one.held()
    assert other.held()
    assert not same.held()
    one.release()
    other.release()


def test_the_lock_is_the_one_of_version_0_1_0(tmp_path: Path) -> None:
    lock = leadership(sqlalchemy.create_engine("sqlite://"), tmp_path, "connect")
    assert lock.held()
    lock.release()
    assert [each.name for each in tmp_path.iterdir()] == ["sluiceway-mirror-5a638a12.lock"]


@pytest.mark.parametrize("free", [True, False])
def test_the_databases_answer_says_who_holds_the_lock(monkeypatch: pytest.MonkeyPatch, free: bool) -> None:
    """SQLite answers in place of a server, which counts the connections that hold the lock."""
    monkeypatch.setitem(DatabaseLeadership._TAKE, "sqlite", f"SELECT {int(free)} WHERE :number IS NOT NULL")
    engine = sqlalchemy.create_engine("sqlite://", poolclass=sqlalchemy.pool.QueuePool)
    lock = DatabaseLeadership(engine, "connect")
    assert [lock.held(), lock.held()] == [free, free]
    pool = engine.pool
    assert isinstance(pool, sqlalchemy.pool.QueuePool)
    assert pool.checkedout() == int(free)  # a process that does not hold the lock keeps no connection
    lock.release()
    assert pool.checkedout() == 0
