"""DltSink while the process of its task is killed: destinations of databases and files, appending and merging.

The task runs in a process of its own, as on an executor, and the loader in another one, which ends with it. KILLS in the
environment is the number of kills of each kind.
"""

from __future__ import annotations

import os
import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from support.dlt_targets import DltTarget, DuckDbTarget, FolderTarget, PostgresTarget
from support.faults.rows import NewRow
from support.jdbc_sink import JSON, STATIC_MEMBER, TaskProcess, fill, kill_at_random, person
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

KILLS = int(os.environ.get("KILLS", "20"))
MERGE = {"dlt.tables.upsert-mode-enabled": "true", "dlt.positions.enabled": "true"}
_ROUND = 2000  # records for each kill, more than a task loads until it is killed


@pytest.mark.parametrize(
    ("kind", "merges", "keeps_folder"),
    [
        ("duckdb", False, True),
        ("duckdb", True, False),
        ("postgres", False, True),
        ("postgres", True, False),
        ("native", False, True),
        ("delta", False, True),
        ("delta", True, False),
        ("iceberg", False, True),
        ("iceberg", True, False),
    ],
)
@pytest.mark.timeout(3600)
def test_killed_many_times_each_record_is_loaded_once(
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    chance: random.Random,
    row: NewRow,
    kind: str,
    merges: bool,
    keeps_folder: bool,
) -> None:
    kafka, target = Kafka(kafka_bootstrap), _target(kind, request, tmp_path)
    how = f"{'merging' if merges else 'appending'}, folder {'kept' if keeps_folder else 'lost at each kill'}"
    made = row(f"dlt, {kind}, {how}: {KILLS} kills", "each record once")
    topic = kafka.create(unique("sunk").replace("-", "_").lower(), 1)
    config = {"name": f"sink-{topic}", "topics": topic, **target.config, **JSON, **STATIC_MEMBER, **(MERGE if merges else {})}
    small = {"sluiceway.flush.size": "200", "consumer.override.max.poll.records": "100"}
    sent = 0
    for _ in range(KILLS):
        fill(kafka.bootstrap, (person(0, number, f"n{number}", topic=topic) for number in range(sent, sent + _ROUND)))
        sent += _ROUND
        kill_at_random({**config, **small}, kafka.bootstrap, lambda: len(target.ids(topic)), chance, 2.0)
        if not keeps_folder:
            shutil.rmtree(tmp_path / "loads")
    with TaskProcess(config, kafka.bootstrap, bounded=True) as process:
        process.finish()
    found = Counter(target.ids(topic))
    lost, twice = Counter(range(sent)) - found, found - Counter(range(sent))
    made.seen = f"{sent} records, {lost.total()} lost, {twice.total()} twice"
    assert (lost.total(), twice.total()) == (0, 0)


def _target(kind: str, request: pytest.FixtureRequest, folder: Path) -> DltTarget:
    if kind == "duckdb":
        return DuckDbTarget(folder)
    return PostgresTarget(request.getfixturevalue("postgresql"), folder) if kind == "postgres" else FolderTarget(folder, kind)
