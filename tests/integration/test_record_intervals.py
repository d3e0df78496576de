"""Exact runs of sources in Python and Java by their records' timestamps: each record in its interval and once, on a real broker.

SEQUENCES in the environment is the number of random sequences.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from sluiceway.config.intervals import Interval, IntervalRun
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.provider.driver import interval_runs
from sluiceway.storage.intervals import IntervalState
from support.engine import Offsets, RunningTask
from support.engine_connectors import lines
from support.exactly_once import exactly_once_worker, opened_stores
from support.intervals import IntervalMover, hours
from support.java_plugins import compiled_plugin, forget_plugins, java_processes
from support.kafka import Kafka, worker_for
from support.timed_source import TIMED_SOURCE, fill

pytestmark = pytest.mark.kafka

_HOURS = hours((int(time.time()) // 3600 - 9) * 3_600_000, 6)
"""Recent ones: retention deletes older records."""
_EACH = 20
_SEQUENCES = int(os.environ.get("SEQUENCES", "1"))
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_JAVA_SOURCE = "test.TimedSource"
_PYTHON_STAGE = {"transforms": "same", "transforms.same.type": "support.java_plugins.Same"}
_LONGEST = {TIMED_SOURCE: 2.0, _JAVA_SOURCE: 5.0}
"""Seconds from a task's start to its kill."""


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("plugins")
    [source] = (Path(__file__).parents[1] / "support/java/timed").glob("*.java")
    compiled_plugin(folder, "timed", [source])
    use_plugin_path({"plugin.path": str(folder)})
    yield folder
    forget_plugins()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "files"
    made.mkdir()
    return made


def _config(connector: str, name: str, topic: str, folder: Path, **more: str) -> dict[str, str]:
    return {
        "name": name,
        "connector.class": connector,
        "folder": str(folder),
        "topic": topic,
        "batch": "7",
        "airflow.interval.time": "record",
        "key.converter": _STRINGS,
        "value.converter": _STRINGS,
        **more,
    }


def _values(kafka: Kafka, topic: str) -> list[str]:
    return [(message.value() or b"").decode() for message in kafka.read_committed(topic)]


def _each_in_its_run(mover: IntervalMover, kafka: Kafka, topic: str, expected: dict[Interval, list[str]]) -> None:
    before: list[str] = []
    for hour, wanted in expected.items():
        entry = mover.move(hour, f"run-{hour.start}")
        assert entry is not None
        assert (entry.state, entry.interval) == (IntervalState.DONE, hour)
        found = _values(kafka, topic)
        assert sorted(found[len(before) :]) == sorted(wanted)
        before = found
    assert mover.move(next(iter(expected)), "cleared") is not None
    assert _values(kafka, topic) == before, "what was read is not read again"


def _in_any_sequence(mover: IntervalMover, chance: random.Random, longest: float, steps: int) -> str:
    kills = clears = 0
    done: set[Interval] = set()
    for _ in range(steps):
        open_ = [each for each in _HOURS if each not in done]
        hour = chance.choice([*open_[:1], *open_[:1], chance.choice(_HOURS)])
        clears += hour in done
        entry = mover.move(hour, f"run-{hour.start}", chance.uniform(0, longest) if chance.random() < 0.6 else None)
        kills += entry is None
        done |= {hour} if entry is not None else set()
    for hour in _HOURS:
        assert mover.move(hour, f"run-{hour.start}") is not None
    assert {entry.state for entry in mover.ledger().entries.values()} == {IntervalState.DONE}
    return f"{kills} kills, {clears} clears"


@pytest.mark.parametrize("required", [True, pytest.param(False, marks=pytest.mark.long)])
def test_each_record_is_moved_by_the_run_of_its_interval(
    kafka: Kafka, unique: Callable[[str], str], chance: random.Random, folder: Path, required: bool
) -> None:
    topic, expected = kafka.create(unique("timed")), fill(folder, 5, _HOURS[:3], _EACH, chance)
    worker = worker_for(kafka.bootstrap, unique, **{"exactly.once.source.support": "enabled" if required else "disabled"})
    guarantee = {"exactly.once.support": "required"} if required else {}
    mover = IntervalMover(worker, _config(TIMED_SOURCE, unique("source"), topic, folder, **guarantee), tasks=2)
    _each_in_its_run(mover, kafka, topic, expected)


@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_in_any_sequence_of_runs_clears_and_kills_each_record_is_in_the_topic_once(
    kafka: Kafka,
    unique: Callable[[str], str],
    chance: random.Random,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    sequence: int,
) -> None:
    monkeypatch.setattr(interval_runs, "_DRIVER_MS", 0)  # else a run waits that long after another one has died
    topic, expected = kafka.create(unique("timed")), fill(folder, 5, _HOURS, _EACH, chance)
    worker = worker_for(kafka.bootstrap, unique, **{"exactly.once.source.support": "enabled"})
    required = {"exactly.once.support": "required"}
    mover = IntervalMover(worker, _config(TIMED_SOURCE, unique("source"), topic, folder, **required), tasks=2)
    print(f"sequence {sequence}:", _in_any_sequence(mover, chance, _LONGEST[TIMED_SOURCE], 8))
    assert sorted(_values(kafka, topic)) == sorted(line for wanted in expected.values() for line in wanted)


@pytest.mark.parametrize("mode", ["files", "logs"])
@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_in_any_sequence_each_record_of_a_file_is_in_the_topic_once_by_the_time_in_its_field(
    kafka: Kafka,
    unique: Callable[[str], str],
    chance: random.Random,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: str,
    sequence: int,
) -> None:
    monkeypatch.setattr(interval_runs, "_DRIVER_MS", 0)
    topic, expected = kafka.create(unique("timed")), fill(folder, 5, _HOURS, _EACH, chance)
    for file in folder.iterdir():
        file.write_text(file.read_text().replace(" ", "\t"))
    worker = worker_for(kafka.bootstrap, unique, **{"exactly.once.source.support": "enabled"})
    config = {
        "name": unique("source"),
        "connector.class": "FolderSource",
        "paths": f"{folder}/*.txt",
        "mode": mode,
        "topic": topic,
        "batch.size": "7",
        "format": "csv",
        "csv.delimiter": "\\t",
        "csv.columns": "at,text",
        "csv.types": "at:int64",
        "airflow.interval.time": "record",
        "airflow.interval.field": "at",
        "exactly.once.support": "required",
        "key.converter": _STRINGS,
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    mover = IntervalMover(worker, config, tasks=2)
    first = next(iter(expected))
    assert mover.move(first, "first") is not None
    assert sorted(_lines(kafka, topic)) == sorted(expected[first])
    print(f"sequence {sequence}:", _in_any_sequence(mover, chance, _LONGEST[TIMED_SOURCE], 8))
    assert sorted(_lines(kafka, topic)) == sorted(line for wanted in expected.values() for line in wanted)


def _lines(kafka: Kafka, topic: str) -> list[str]:
    return [f"{value['at']} {value['text']}" for value in map(json.loads, _values(kafka, topic))]


@pytest.mark.parametrize("chain", [{}, pytest.param(_PYTHON_STAGE, marks=pytest.mark.long)], ids=["in Java", "in Python"])
def test_each_record_of_a_java_source_is_moved_by_the_run_of_its_interval(
    plugin_path: Path, kafka: Kafka, unique: Callable[[str], str], chance: random.Random, folder: Path, chain: dict[str, str]
) -> None:
    topic, expected = kafka.create(unique("timed")), fill(folder, 3, _HOURS[:3], _EACH, chance)
    properties = {"exactly.once.source.support": "enabled", "plugin.path": str(plugin_path)}
    mover = IntervalMover(
        worker_for(kafka.bootstrap, unique, **properties), _config(_JAVA_SOURCE, unique("source"), topic, folder, **chain)
    )
    _each_in_its_run(mover, kafka, topic, expected)


@pytest.mark.long
@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_in_any_sequence_each_record_of_a_java_source_is_in_the_topic_once(
    plugin_path: Path,
    kafka: Kafka,
    unique: Callable[[str], str],
    chance: random.Random,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    sequence: int,
) -> None:
    monkeypatch.setattr(interval_runs, "_DRIVER_MS", 0)
    topic, expected = kafka.create(unique("timed")), fill(folder, 4, _HOURS, _EACH, chance)
    properties = {"exactly.once.source.support": "enabled", "plugin.path": str(plugin_path)}
    config = _config(_JAVA_SOURCE, unique("source"), topic, folder, **{"exactly.once.support": "required"})
    mover = IntervalMover(worker_for(kafka.bootstrap, unique, **properties), config)
    print(f"sequence {sequence}:", _in_any_sequence(mover, chance, _LONGEST[_JAVA_SOURCE], 6))
    assert sorted(_values(kafka, topic)) == sorted(line for wanted in expected.values() for line in wanted)
    assert java_processes() == []


@pytest.mark.parametrize("exactly_once", [False, True])
def test_a_java_task_learns_of_the_records_that_kafka_has_only(
    plugin_path: Path, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path, folder: Path, exactly_once: bool
) -> None:
    first = _HOURS[0]
    (folder / "a.txt").write_text("".join(f"{first.end - 10 + number} {number}\n" for number in range(30)))
    (folder / "b.txt").write_text(f"{first.start} b\n")
    topic, log = kafka.create(unique("timed")), tmp_path / "log"
    config = _config(_JAVA_SOURCE, unique("source"), topic, folder, log=str(log), files="a.txt,b.txt")
    config |= {"task.class": f"{_JAVA_SOURCE}$NotingTask", **IntervalRun(config["name"], first, 1).keys()}
    worker = exactly_once_worker(kafka.bootstrap, unique) if exactly_once else kafka.worker()
    with opened_stores(worker) if exactly_once else nullcontext(lambda _config: Offsets()) as opened:
        store = opened({})
        with RunningTask(config, worker, store=store, bounded=True) as task:
            result = task.join()
        assert (result.trace, result.records) == (None, 11)
        assert store.get(config["name"], [{"file": "a.txt"}, {"file": "b.txt"}]) == [{"line": 10}, {"line": 1}]
    wanted = [f"{first.start} b", *(f"{first.end - 10 + number} {number}" for number in range(10))]
    assert sorted(line for line in lines(log) if line != "commit") == sorted(wanted)
    assert lines(log)[-1] != "commit", "it would say that all records are in Kafka"


@pytest.mark.parametrize("chain", [{}, _PYTHON_STAGE], ids=["in Java", "in Python"])
def test_a_java_record_without_a_timestamp_fails_the_task_before_its_poll_is_sent(
    plugin_path: Path, kafka: Kafka, unique: Callable[[str], str], folder: Path, chain: dict[str, str]
) -> None:
    first = _HOURS[0]
    (folder / "a.txt").write_text("".join(f"{first.start + number} {number}\n" for number in range(10)) + "- none\n")
    topic = kafka.create(unique("timed"))
    config = _config(_JAVA_SOURCE, unique("source"), topic, folder, files="a.txt", **chain)
    config |= {"task.class": f"{_JAVA_SOURCE}$PlainTask", **IntervalRun(config["name"], first, 1).keys()}
    offsets = Offsets()
    with RunningTask(config, kafka.worker(), offsets=offsets, bounded=True) as task:
        result = task.join()
    assert "a record without a timestamp (topic " in str(result.trace)
    assert 'source partition {"file":"a.txt"}, source offset {"line":11})' in str(result.trace)
    assert "airflow.interval.time=record" in str(result.trace)
    assert (result.records, list(offsets.stored.values())) == (7, [{"line": 7}])
    assert len(_values(kafka, topic)) == 7
