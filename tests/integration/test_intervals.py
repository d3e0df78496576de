"""Exact runs on a real broker: each record in the one interval that it belongs to, also after kills, clears and side by side.

SEQUENCES in the environment is the number of random sequences, each of which moves some hours of a day.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

import orjson
import pendulum
import pytest
from airflow.timetables.base import TimeRestriction
from airflow.timetables.interval import CronDataIntervalTimetable
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as TopicPartitionOffset

from sluiceway.config.intervals import Interval, interval_text
from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import BadRequestError, ConnectError
from sluiceway.herder import Herder
from sluiceway.provider.driver.interval_connector import IntervalConnector
from sluiceway.storage.factory import open_stores
from sluiceway.storage.intervals import IntervalState
from support.database import DatabaseForTest
from support.eventually import LIMIT, eventually
from support.interval_targets import DatabaseTable, LakeTable, ParquetFiles, Target, fill_table
from support.intervals import CONVERTERS, IntervalMover, Machine, belongings, fill, hours, json_of
from support.kafka import Kafka, worker_for

pytestmark = pytest.mark.kafka

_LATENESS = 600_000
_DAY = hours(1_767_225_600_000, 24)  # 2026-01-01
_HOURS = _DAY[:6]
_FIELDS = [{"field": each, "type": "string", "optional": False} for each in ("text", "at")]
_WITH_TIME = {"type": "struct", "optional": False, "fields": _FIELDS}
_SEQUENCES = int(os.environ.get("SEQUENCES", "1"))


class Hours(NamedTuple):
    """A topic, the times of its values, and those that belong to each hour; the late ones among them apart, too."""

    topic: str
    times: Mapping[str, int]
    of: Mapping[Interval, list[str]]
    late: Mapping[Interval, list[str]]

    def values(self, hours: Sequence[Interval]) -> list[str]:
        """Return the values that belong to hours, sorted."""
        return sorted(value for hour in hours for value in self.of[hour])


def _some_hours(chance: random.Random) -> list[Interval]:
    """Return six successive hours of the day."""
    first = chance.randrange(len(_DAY) - 5)
    return _DAY[first : first + 6]


@pytest.fixture(scope="module")
def filled(kafka: Kafka, unique: Callable[[str], str]) -> Hours:
    """A topic of three partitions with the records of a day, which are late and out of order."""
    topic = kafka.create(unique("topic"), 3, retention_ms="-1")
    sent = fill(kafka.bootstrap, topic, 3, _DAY, 50, _LATENESS, random.Random(7))  # noqa: S311 (test data)
    times = {each.value: each.time for each in sent}
    of = belongings(sent, _DAY, _LATENESS)
    late = {interval: [value for value in values if times[value] < interval.start] for interval, values in of.items()}
    return Hours(topic, times, of, late)


_SERVERS = ["postgresql", pytest.param("mariadb", marks=pytest.mark.long)]


@pytest.fixture(params=["parquet", "iceberg", pytest.param("delta", marks=pytest.mark.long), *_SERVERS])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    if request.param == "parquet":
        return ParquetFiles(tmp_path)
    if request.param in ("iceberg", "delta"):
        return LakeTable(request.param, tmp_path)
    return DatabaseTable(request.getfixturevalue(request.param))


@pytest.fixture(params=["iceberg", "delta", *_SERVERS])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> LakeTable | DatabaseTable:
    if request.param in ("iceberg", "delta"):
        return LakeTable(request.param, tmp_path)
    return DatabaseTable(request.getfixturevalue(request.param))


def _mover(worker: WorkerConfig, name: str, topic: str, target: Target, **more: str) -> IntervalMover:
    own = {"name": name, "topics": topic, "airflow.interval.lateness": "10m", "consumer.override.session.timeout.ms": "6000"}
    return IntervalMover(worker, {**target.config, **CONVERTERS, **own, **more})


def test_each_record_is_in_the_file_of_its_interval(
    filled: Hours, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    target = ParquetFiles(tmp_path)
    mover = _mover(worker, unique("sink"), filled.topic, target)
    marks = {interval: f"20260101T{number:02d}0000Z" for number, interval in enumerate(_HOURS)}
    expected = {mark: sorted(filled.of[interval]) for interval, mark in marks.items()}
    for interval in reversed(_HOURS):
        entry = mover.move(interval, marks[interval])
        assert entry is not None
        assert (entry.state, entry.attempt, entry.runs) == (IntervalState.DONE, 1, (marks[interval],))
        assert (entry.records, entry.at_least) == (len(filled.of[interval]), False)
    assert target.by_interval() == expected
    again = mover.move(_HOURS[2], "another run")
    assert again is not None
    assert (again.attempt, again.records) == (2, len(filled.of[_HOURS[2]]))
    assert target.by_interval() == expected, "the files of the interval were replaced"
    assert not list((tmp_path / "_sluiceway").iterdir()), "the commit logs of ended runs are gone"
    assert mover.ledger().entries[_HOURS[2].start] == again


@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_in_any_sequence_of_runs_clears_and_kills_each_record_is_moved_once(
    filled: Hours, worker: WorkerConfig, unique: Callable[[str], str], target: Target, chance: random.Random, sequence: int
) -> None:
    mover = _mover(worker, unique("sink"), filled.topic, target)
    some = _some_hours(chance)
    machine = Machine(mover, some, chance)
    machine.run(5)
    assert target.written() == filled.values(some)
    entries = mover.ledger().entries.values()
    assert {entry.state for entry in entries} == {IntervalState.DONE}
    assert sum(entry.records or 0 for entry in entries if not entry.at_least) <= len(target.written())
    print(f"sequence {sequence}: {machine.kills} kills, {machine.clears} clears")


def test_rows_that_are_added_are_replaced_in_one_transaction(
    kafka: Kafka, worker: WorkerConfig, unique: Callable[[str], str], table: LakeTable | DatabaseTable
) -> None:
    topic = kafka.create(unique("topic"), 2, retention_ms="-1")
    fill(kafka.bootstrap, topic, 2, _HOURS[:3], 50, _LATENESS, random.Random(3))  # noqa: S311 (test data)
    rerun = {"airflow.interval.late": "rerun", "airflow.interval.rerun.within": "1h", "tasks.max": "2"}
    mover = _mover(worker, unique("sink"), topic, table, **rerun)
    for hour in _HOURS[:3]:
        assert mover.move(hour, str(hour)) is not None
    assert mover.rerun() > 0, "late records of an hour are written with its others"
    before = sorted(table.rows())
    assert len({text for text, _ in before}) == len(before) > 250
    seen: list[list[tuple[str, str]]] = []
    begun = mover.begin(_HOURS[1], "again")
    assert isinstance(begun, IntervalConnector)
    with ThreadPoolExecutor(1) as pool:
        moved = pool.submit(mover.finish, begun)
        while not moved.done():
            seen.append(sorted(table.rows()))
    entry = moved.result()
    assert entry is not None
    assert entry.attempt >= 2
    assert len(seen) > 1
    assert all(each == before for each in seen), "a reader sees the rows of one attempt"
    assert sorted(table.rows()) == before
    with_filter = {"transforms": "none", "transforms.none.type": "org.apache.kafka.connect.transforms.Filter"}
    mover.config |= with_filter
    assert mover.move(_HOURS[2], "nothing is left") is not None
    third = interval_text(_HOURS[2])
    assert sorted(table.rows()) == [row for row in before if row[1] != third]


@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_late_records_are_moved_with_their_own_hour_if_its_run_is_cleared_for_them(
    filled: Hours, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path, chance: random.Random, sequence: int
) -> None:
    rerun = {"airflow.interval.late": "rerun"}
    straight = ParquetFiles(tmp_path / "straight")
    mover = _mover(worker, unique("sink"), filled.topic, straight, **rerun)
    for interval in _HOURS:
        assert mover.move(interval, str(interval)) is not None
    entries = mover.ledger().entries
    late = {interval.start: len(filled.late[interval]) for interval in _HOURS}
    assert {start: entry.late for start, entry in entries.items()} == late
    waiting = [entry for entry in entries.values() if entry.rerun]
    assert len(waiting) > 1, "late records were left to their own hours"
    assert mover.rerun() == len(waiting), "once each"
    expected: dict[str, list[str]] = {}
    for value in filled.values(_HOURS):
        hour = (filled.times[value] - _HOURS[0].start) // 3_600_000
        expected.setdefault(f"20260101T{hour:02d}0000Z", []).append(value)
    assert straight.by_interval() == expected
    target = ParquetFiles(tmp_path / "random")
    some = _some_hours(chance)
    machine = Machine(_mover(worker, unique("sink"), filled.topic, target, **rerun), some, chance)
    machine.run(5)
    assert target.written() == filled.values(some)
    print(f"sequence {sequence}: {machine.kills} kills, {machine.clears} clears")


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"], ids=["an hour is missing", "an hour is there twice"])
@pytest.mark.parametrize(
    "cron", ["0 * * * *", *(pytest.param(each, marks=pytest.mark.long) for each in ("30 2 * * *", "0 */6 * * *"))]
)
def test_records_over_a_change_of_summer_time_are_moved_once(
    kafka: Kafka, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path, cron: str, day: str
) -> None:
    noon = pendulum.parse(f"{day}T12:00:00", tz="Europe/Berlin")
    assert isinstance(noon, pendulum.DateTime)
    of_day = _intervals_of(cron, noon.subtract(hours=36), noon.add(hours=36))
    assert [each.end for each in of_day[:-1]] == [each.start for each in of_day[1:]], "no gap, and no time twice"
    if cron == "0 * * * *":
        assert {each.end - each.start for each in of_day} == {3_600_000}
    near = [each for each in of_day if abs(each.start - noon.int_timestamp * 1000) < 16 * 3_600_000][:8]
    topic, target = kafka.create(unique("topic"), 2, retention_ms="-1"), ParquetFiles(tmp_path)
    sent = fill(kafka.bootstrap, topic, 2, near, 10, _LATENESS, random.Random(7))  # noqa: S311 (test data)
    mover = _mover(worker, unique("sink"), topic, target)
    entries = [mover.move(each, str(each)) for each in near]
    expected = belongings(sent, near, _LATENESS)
    assert [entry.records for entry in entries if entry] == [len(expected[each]) for each in near]
    assert target.written() == sorted(value for values in expected.values() for value in values)


def _intervals_of(cron: str, first: pendulum.DateTime, last: pendulum.DateTime) -> list[Interval]:
    """Return the data intervals that Airflow makes of a cron expression in the time zone of Berlin."""
    timetable = CronDataIntervalTimetable(cron, timezone="Europe/Berlin")
    found: list[Interval] = []
    restriction, before = TimeRestriction(earliest=first, latest=last, catchup=True), None
    while info := timetable.next_dagrun_info(last_automated_data_interval=before, restriction=restriction):
        before = info.data_interval
        assert before is not None
        found.append(Interval(before.start.int_timestamp * 1000, before.end.int_timestamp * 1000))
    return found


def test_late_records_go_to_the_dead_letter_queue_if_asked(
    kafka: Kafka, filled: Hours, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    target, dlq = ParquetFiles(tmp_path), kafka.create(unique("dlq"))
    tolerant = {"errors.tolerance": "all", "errors.deadletterqueue.topic.name": dlq}
    replication = {"errors.deadletterqueue.topic.replication.factor": "1"}
    mover = _mover(worker, unique("sink"), filled.topic, target, **{"airflow.interval.late": "dlq"}, **tolerant, **replication)
    entries = [mover.move(interval, str(interval)) for interval in _HOURS]
    late = sorted(value for interval in _HOURS for value in filled.late[interval])
    assert late
    assert sorted(message.key().decode() for message in kafka.read_committed(dlq)) == late
    assert [entry.late for entry in entries if entry] == [len(filled.late[interval]) for interval in _HOURS]
    assert sorted([*target.written(), *late]) == filled.values(_HOURS)


def test_a_run_waits_for_the_records_of_an_open_transaction(
    kafka: Kafka, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic, target = kafka.create(unique("topic"), retention_ms="-1"), ParquetFiles(tmp_path)
    mover = _mover(worker, unique("sink"), topic, target, **{"consumer.override.isolation.level": "read_committed"})
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": unique("transaction")})
    producer.init_transactions()
    fill(kafka.bootstrap, topic, 1, _HOURS[:1], 5, 1000, random.Random(1))  # noqa: S311 (test data)
    producer.begin_transaction()
    for number in range(3):
        producer.produce(topic, json_of(f"open-{number}"), timestamp=_HOURS[0].start + number)
    producer.flush()
    begun = mover.begin(_HOURS[0], "run")
    assert isinstance(begun, IntervalConnector)
    with ThreadPoolExecutor(1) as pool:
        moved = pool.submit(mover.finish, begun)
        with pytest.raises(TimeoutError):
            moved.result(3)  # the time that a run without the transaction takes, several times over
        producer.commit_transaction()
        entry = moved.result(LIMIT)
    assert entry is not None
    assert entry.records == 8
    assert {f"open-{number}" for number in range(3)} < set(target.written())


def test_files_are_not_replaced_by_what_retention_has_left(
    kafka: Kafka, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic, target = kafka.create(unique("topic"), retention_ms="-1"), ParquetFiles(tmp_path)
    fill(kafka.bootstrap, topic, 1, _HOURS[:1], 5, 1000, random.Random(1))  # noqa: S311 (test data)
    mover = _mover(worker, unique("sink"), topic, target)
    assert mover.move(_HOURS[0], "run") is not None
    before = target.written()
    [deleted] = kafka.admin.delete_records([TopicPartitionOffset(topic, 0, 2)]).values()
    deleted.result(LIMIT)
    with pytest.raises(BadRequestError, match=r"cannot be moved again: records of .* do not exist any more"):
        mover.move(_HOURS[0], "run")
    assert target.written() == before


def test_records_that_come_while_an_interval_is_moved_are_not_its_own(
    kafka: Kafka, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic, target = kafka.create(unique("topic"), retention_ms="-1"), ParquetFiles(tmp_path)
    fill(kafka.bootstrap, topic, 1, _HOURS[:2], 5, 1000, random.Random(1))  # noqa: S311 (test data)
    mover = _mover(worker, unique("sink"), topic, target)
    begun = mover.begin(_HOURS[1], "run")
    assert isinstance(begun, IntervalConnector)
    kafka.produce(topic, json_of("late"), timestamp=_HOURS[1].start)
    assert mover.finish(begun) is not None
    assert len(target.written()) == 5, "it came after the end had closed"
    third = mover.move(_HOURS[2], "next")
    assert third is not None
    assert (third.records, third.late) == (1, 1)


@pytest.fixture
def own_topic(kafka: Kafka, unique: Callable[[str], str]) -> str:
    """A topic with three records in the first hour."""
    topic = kafka.create(unique("topic"), retention_ms="-1", message_timestamp_after_max_ms=str(2**62))
    _produce(kafka, topic, "first", _HOURS[0])
    return topic


def _produce(kafka: Kafka, topic: str, name: str, hour: Interval, count: int = 3) -> None:
    for number in range(count):
        kafka.produce(topic, json_of(f"{name}-{number}"), timestamp=hour.start + 1000 * number)


def test_a_field_has_the_times_of_records(
    kafka: Kafka, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic, target = kafka.create(unique("topic"), retention_ms="-1"), ParquetFiles(tmp_path)
    minutes = {"early": 5, "at the end": 58, "late": 30}
    for number, hour in enumerate(_HOURS[:3]):
        for name, minute in minutes.items():
            comes = minute + (75 if name == "late" else 5)  # within the lateness, or not
            at = {
                "text": f"{number} {name}",
                "at": datetime.fromtimestamp(hour.start / 1000 + 60 * minute, timezone.utc).isoformat(),
            }
            kafka.produce(topic, orjson.dumps({"schema": _WITH_TIME, "payload": at}), timestamp=hour.start + 60_000 * comes)
    mover = _mover(worker, unique("sink"), topic, target, **{"airflow.interval.field": "at"})
    entries = [mover.move(hour, str(hour)) for hour in reversed(_HOURS[:4])]
    assert [(entry.records, entry.late) for entry in reversed(entries) if entry] == [(2, 0), (3, 1), (3, 1), (1, 1)]
    for number, found in enumerate(target.by_interval()[f"20260101T{hour:02d}0000Z"] for hour in range(4)):
        before = [f"{number - 1} late"] if number else []
        own = [f"{number} at the end", f"{number} early"] if number < 3 else []
        assert found == sorted([*before, *own])


def test_a_run_whose_last_commit_fails_is_not_done(
    kafka: Kafka, own_topic: str, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    target = ParquetFiles(tmp_path)
    mover = _mover(worker, unique("sink"), own_topic, target, **{"flush.size": "1000"})
    in_the_way = tmp_path / "topics" / own_topic
    in_the_way.parent.mkdir()
    in_the_way.touch()
    with pytest.raises(ConnectError, match=r"is committed up to offset 0 of 3\. The next try continues there"):
        mover.move(_HOURS[0], "run")
    assert mover.ledger().entries[_HOURS[0].start].state is IntervalState.RUNNING
    in_the_way.unlink()
    again = mover.move(_HOURS[0], "run")
    assert again is not None
    assert (again.attempt, again.at_least, len(target.written())) == (1, True, 3), "the files' log was ahead of Kafka's offsets"


def test_a_record_from_the_future_closes_nothing(
    kafka: Kafka, own_topic: str, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    target = ParquetFiles(tmp_path)
    ten_years = Interval(int(time.time() * 1000) + 315_000_000_000, 0)
    _produce(kafka, own_topic, "future", ten_years, 1)
    for number, hour in enumerate(_HOURS[:3]):
        _produce(kafka, own_topic, f"hour-{number}", hour)
    mover = _mover(worker, unique("sink"), own_topic, target)
    moved = [mover.move(hour, str(hour)) for hour in _HOURS[:3]]
    assert [entry.records for entry in moved if entry] == [6, 3, 3]


def test_late_records_of_a_topic_that_comes_later_are_moved_by_the_next_run(
    kafka: Kafka, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic, target = unique("topic"), ParquetFiles(tmp_path)
    mover = _mover(worker, unique("sink"), topic, target)
    begun = mover.begin(_HOURS[0], "without a topic")
    assert isinstance(begun, IntervalConnector)
    assert mover.runs.end(begun.name, None).records == 0
    kafka.create(topic, retention_ms="-1")
    _produce(kafka, topic, "late", _HOURS[0])
    _produce(kafka, topic, "in-time", _HOURS[1])
    entry = mover.move(_HOURS[1], "next")
    assert entry is not None
    assert (entry.records, entry.late) == (6, 3)


def test_the_closings_of_a_deleted_topic_do_not_hold_for_one_of_its_name(
    kafka: Kafka, own_topic: str, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    target = ParquetFiles(tmp_path)
    mover = _mover(worker, unique("sink"), own_topic, target)
    assert mover.move(_HOURS[0], "run") is not None
    before = target.written()
    kafka.admin.delete_topics([own_topic])[own_topic].result(LIMIT)
    eventually(lambda: own_topic not in kafka.admin.list_topics(timeout=10).topics, what="the end of the topic")
    eventually(lambda: kafka.create(own_topic, retention_ms="-1"), what="a topic of the same name")
    kafka.produce(own_topic, json_of("again"), timestamp=_HOURS[1].start)
    entry = mover.move(_HOURS[1], "next")
    assert entry is not None
    assert entry.records == 1
    with pytest.raises(BadRequestError, match="cannot be moved again"):
        mover.move(_HOURS[0], "run")
    assert set(before) < set(target.written())


def test_a_try_continues_whatever_has_become_of_its_connector(
    kafka: Kafka, own_topic: str, worker: WorkerConfig, unique: Callable[[str], str], tmp_path: Path
) -> None:
    target = ParquetFiles(tmp_path)
    latest = {"consumer.override.auto.offset.reset": "latest"}
    mover = _mover(worker, unique("sink"), own_topic, target, **latest)
    begun = mover.begin(_HOURS[0], "run")
    assert isinstance(begun, IntervalConnector)
    group = f"connect-{begun.name}"
    assert kafka.committed(group) == {(own_topic, 0): 0}
    kafka.admin.delete_consumer_groups([group])[group].result(LIMIT)  # as Kafka does with old ones
    mover.config["flush.size"] = "77"
    assert isinstance(mover.begin(_HOURS[0], "run"), IntervalConnector)
    assert kafka.committed(group) == {(own_topic, 0): 0}
    with open_stores(worker, brief=True) as stores:
        herder = Herder(worker, stores.config, stores.status, stores.offsets)
        assert herder.info(begun.name).config["flush.size"] == "77", "what was wrong may have been mended"
        kafka.set_offsets(group, {(own_topic, 0): 2})
        herder.stop(begun.name)
    assert isinstance(mover.begin(_HOURS[0], "run"), IntervalConnector)
    assert kafka.committed(group) == {(own_topic, 0): 2}, "somebody has stopped it, after it had moved two records"


@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_rows_are_moved_to_a_topic_in_their_interval_and_once(
    kafka: Kafka,
    kafka_bootstrap: str,
    postgresql: DatabaseForTest,
    unique: Callable[[str], str],
    chance: random.Random,
    sequence: int,
) -> None:
    topic = unique("rows-")
    kafka.create(f"{topic}moments")
    expected = fill_table(postgresql, _DAY, chance)
    worker = worker_for(kafka_bootstrap, unique, **{"exactly.once.source.support": "enabled"})
    config = {
        "name": unique("source"),
        "connector.class": "JdbcSource",
        **postgresql.config,
        "mode": "timestamp+incrementing",
        "timestamp.column.name": "at",
        "incrementing.column.name": "id",
        "table.whitelist": "public.moments",
        "topic.prefix": topic,
        "poll.interval.ms": "100",
        "batch.max.rows": "7",
        "key.converter": "StringConverter",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
    }
    mover = IntervalMover(worker, config)
    some = _some_hours(chance)
    first = some[0]
    assert mover.move(first, "first") is not None
    values = [orjson.loads(message.value()) for message in kafka.read_committed(f"{topic}moments")]
    assert sorted(value["text"] for value in values) == sorted(expected[first])
    machine = Machine(mover, some, chance)
    machine.run(5)
    values = [orjson.loads(message.value()) for message in kafka.read_committed(f"{topic}moments")]
    assert sorted(value["text"] for value in values) == sorted(text for hour in some for text in expected[hour])
    print(f"sequence {sequence}: {machine.kills} kills, {machine.clears} clears")


@pytest.mark.parametrize("sequence", range(_SEQUENCES))
def test_files_are_moved_to_a_topic_in_the_interval_of_their_modification_and_once(
    kafka: Kafka, unique: Callable[[str], str], chance: random.Random, tmp_path: Path, sequence: int
) -> None:
    topic, expected = kafka.create(unique("files")), []
    for hour in _HOURS:
        for number in range(10):
            file = tmp_path / str(number % 3) / f"{hour.start}-{number}.txt"
            file.parent.mkdir(exist_ok=True)
            lines = [f"{file.name}-{line}" for line in range(chance.randrange(200))]
            file.write_text("".join(f"{line}\n" for line in lines))
            moment = chance.choice((hour.start, hour.end - 1, chance.randrange(hour.start, hour.end)))
            os.utime(file, ns=(moment * 1_000_000, moment * 1_000_000))
            expected += lines
    worker = worker_for(kafka.bootstrap, unique, **{"exactly.once.source.support": "enabled"})
    config = {
        "name": unique("source"),
        "connector.class": "FolderSource",
        "paths": f"{tmp_path}/*/*.txt",
        "mode": "files",
        "topic": topic,
        "batch.size": "20",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
    }
    machine = Machine(IntervalMover(worker, config, tasks=2), _HOURS, chance)
    machine.run(5)
    values = [(message.value() or b"").decode() for message in kafka.read_committed(topic)]
    assert sorted(values) == sorted(expected)
    print(f"sequence {sequence}: {machine.kills} kills, {machine.clears} clears")
