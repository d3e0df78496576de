"""The Iceberg and the Delta sink with a real broker: each record once, whatever is killed, and offsets that users set."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from sluiceway.api import TopicPartition
from support.eventually import eventually
from support.jdbc_sink import TaskProcess, fill, person
from support.kafka import Kafka
from support.table_sink import LAST_POINT, POINTS, Lake, crash, sink_config

pytestmark = pytest.mark.kafka

COUNT = 20_000
#: The points of a commit at which `make test` kills a sink; `make test-frames` does at each.
_IN_MAKE_TEST = "after the commit"  # before it, nothing of the commit can be seen


@pytest.fixture(params=["iceberg", "delta"])
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


@pytest.fixture
def numbers(kafka: Kafka, unique: Callable[[str], str]) -> str:
    """A topic of two partitions with the numbers below COUNT."""
    topic = kafka.create(unique("numbers"), 2)
    fill(kafka.bootstrap, (person(0, number, f"n{number}", topic=topic, partition=number % 2) for number in range(COUNT)))
    return topic


def finish(config: dict[str, str], kafka: Kafka) -> None:
    with TaskProcess(config, kafka.bootstrap, bounded=True) as process:
        process.finish()


def ids(lake: Lake, config: dict[str, str]) -> list[int]:
    return sorted(int(str(number)) for number in lake.read(config).column("id").to_pylist())


def stored(lake: Lake, config: dict[str, str], topic: str) -> int:
    """Return how many records the table has by its offsets."""
    table = lake.table(config)
    return 0 if table is None else sum(table.offset(TopicPartition(topic, number)) or 0 for number in range(2))


def check_rows(lake: Lake, config: dict[str, str]) -> None:
    """Check that each record is in the table once."""
    found, expected = Counter(ids(lake, config)), Counter(range(COUNT))
    lost, extra = sorted((expected - found).elements()), sorted((found - expected).elements())
    assert not lost, f"{len(lost)} of {COUNT} records are lost, such as {lost[:5]}"
    assert not extra, f"{len(extra)} rows are there twice, such as {extra[:5]}"


def check(lake: Lake, config: dict[str, str], kafka: Kafka, topic: str) -> None:
    """Check that each record is in the table once, and that the group has the table's offsets."""
    check_rows(lake, config)
    ends = {(topic, 0): COUNT // 2, (topic, 1): COUNT // 2}
    assert kafka.committed(f"connect-{config['name']}") == ends
    assert {key: lake.table(config).offset(TopicPartition(*key)) for key in ends} == ends


def small_commits(lake: Lake, topic: str) -> dict[str, str]:
    return {**sink_config(lake, topic), "sluiceway.flush.size": "250", "consumer.override.max.poll.records": "250"}


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.long)])
def test_kills_lose_and_repeat_nothing_and_a_sweep_removes_the_orphans(
    lake: Lake, kafka: Kafka, numbers: str, chance: random.Random, kills: int
) -> None:
    config = {**small_commits(lake, numbers), "sluiceway.flush.size": "50", "consumer.override.max.poll.records": "50"}
    killed = 0
    while killed < kills:
        before = lake.files()
        with TaskProcess(config, kafka.bootstrap, bounded=True) as process:
            eventually(lambda known=before: lake.files() - known or not process.alive)
            time.sleep(chance.uniform(0, 0.15))  # kill it at a random point of the next commits
            assert process.alive, "the task came to its end; give the topic more records"
            process.kill()
            killed += 1
    finish(sink_config(lake, numbers), kafka)  # in large commits: 400 small ones take minutes on a slow machine
    check(lake, config, kafka, numbers)
    table = lake.table(config)
    orphans = table.sweep(-60)
    print(f"{lake.format}: {killed} kills, {len(lake.files())} files, {orphans} orphans swept")
    check(lake, config, kafka, numbers)


@pytest.mark.parametrize(
    "point", [each if each == _IN_MAKE_TEST else pytest.param(each, marks=pytest.mark.long) for each in (*POINTS, LAST_POINT)]
)
def test_a_kill_at_each_point_of_a_commit_loses_and_repeats_nothing(lake: Lake, kafka: Kafka, numbers: str, point: str) -> None:
    config = small_commits(lake, numbers)
    assert crash(config, kafka.bootstrap, point, 2)
    assert crash(config, kafka.bootstrap, point, 3)
    finish(config, kafka)
    check(lake, config, kafka, numbers)


def test_offsets_that_a_user_sets_win_over_those_in_the_table(lake: Lake, kafka: Kafka, numbers: str) -> None:
    config = sink_config(lake, numbers)
    finish(config, kafka)
    check(lake, config, kafka, numbers)
    places: dict[tuple[str, int], int] = {(numbers, 0): COUNT // 2 - 1000, (numbers, 1): COUNT // 2}
    assert lake.connector().alter_offsets(config, {TopicPartition(*place): offset for place, offset in places.items()})
    kafka.set_offsets(f"connect-{config['name']}", places)
    finish(config, kafka)
    again = [number for number in range(COUNT) if number % 2 == 0][-1000:]
    assert Counter(ids(lake, config)) == Counter([*range(COUNT), *again])


def test_two_tasks_commit_to_one_table_at_the_same_time(lake: Lake, kafka: Kafka, numbers: str) -> None:
    config = small_commits(lake, numbers)
    configs = [{**config, "consumer.override.group.instance.id": name} for name in ("one", "other")]
    with TaskProcess(configs[0], kafka.bootstrap) as one, TaskProcess(configs[1], kafka.bootstrap) as other:
        eventually(lambda: stored(lake, config, numbers) == COUNT, what="both tasks at the end")
        assert one.alive
        assert other.alive
    check_rows(lake, config)


@pytest.mark.parametrize("lake", ["iceberg"], indirect=True)  # a Delta table without its folder was dropped
def test_a_catalog_that_is_away_delays_records_but_loses_none(lake: Lake, kafka: Kafka, numbers: str) -> None:
    config = small_commits(lake, numbers)
    folder = lake.folder
    with TaskProcess(config, kafka.bootstrap) as process:
        eventually(lake.files, what="the first data file")
        away = folder.with_name(folder.name + "-away")
        folder.rename(away)
        folder.touch()  # every access fails, and nothing can be created
        time.sleep(3)
        folder.unlink()
        away.rename(folder)
        eventually(lambda: stored(lake, config, numbers) == COUNT, what="the end of the topic")
        assert process.alive
    check_rows(lake, config)
