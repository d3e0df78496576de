"""The Prometheus source on real drivers while its processes are killed: each scrape that is missing is marked."""

from __future__ import annotations

import itertools
import json
import random

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from support.eventually import LIMIT
from support.faults.guarantee import Guarantee
from support.faults.kills import at_a_random_point, kill
from support.faults.processes import Role
from support.faults.rows import NewRow
from support.faults.worker_group import Progress, WorkerGroup, read
from support.metric_targets import Answer, answering

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

KILLS = 5
INTERVAL = 500  # milliseconds


@pytest.fixture
def guarantee() -> Guarantee:
    return Guarantee.AT_LEAST_ONCE


def time_of(_key: bytes | None, value: bytes | None) -> int:
    return int(json.loads(value or b"")["timestamp"])


@pytest.mark.timeout(1800)
def test_each_gap_that_a_kill_leaves_is_marked(group: WorkerGroup, row: NewRow, chance: random.Random) -> None:
    made = row(f"1-3: Prometheus source, {KILLS} kills of random processes at random points", "each gap is marked")
    topic = f"{group.name}-metrics"
    admin = AdminClient({"bootstrap.servers": group.address})  # kept in a variable: its futures end with it
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT)
    with answering(lambda _request: Answer("a 1\n")) as address:
        config = {"connector.class": "PrometheusSource", "topic": topic, "targets": address}
        times = {"scrape.interval.ms": str(INTERVAL), "scrape.timeout.ms": str(INTERVAL)}
        json_values = {
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
        }
        group.herder.create(group.name, {**config, **times, **json_values})
        group.driver()
        group.running()
        progress = Progress(group.address, topic, time_of)
        for _ in range(KILLS):
            at_a_random_point(progress, chance)
            kill(group, chance.choice(list(Role)), progress, made)
        progress.close()
        group.drivers[-1].stop(30)
    found = [json.loads(message.value or b"") for message in read(group.address, topic)]
    scrapes = [each for each in found if each["name"] == "up"]
    unmarked, marked = 0, 0
    for before, after in itertools.pairwise(scrapes):
        assert after["timestamp"] > before["timestamp"]
        missing = after["timestamp"] - before["timestamp"] > 2 * INTERVAL  # two scrapes that follow each other are closer
        since = after["gap_since"]
        marked += since is not None
        unmarked += missing and (since is None or since > before["timestamp"])
    made.seen, made.lost = f"{len(scrapes)} scrapes, {marked} marked gaps", unmarked
    assert unmarked == 0
    assert marked >= 1
