"""DltSource on a real broker: offsets of pages and runs, transactions, pauses, and runs of a schedule."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from sluiceway.herder.validation import validate_config
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.dlt_rest import RestApi
from support.dlt_task import config_of
from support.engine import Offsets, RunningTask, batch_forms
from support.eventually import eventually
from support.exactly_once import exactly_once_worker, opened_stores
from support.kafka import Kafka, worker_for

pytestmark = pytest.mark.kafka

JSON = {f"{part}.converter": "JsonConverter" for part in ("key", "value")} | {
    f"{part}.converter.schemas.enable": "false" for part in ("key", "value")
}


@pytest.fixture
def prefix(unique: Callable[[str], str]) -> str:
    return f"{unique('dlt')}."


def given(prefix: str, function: str, args: dict[str, Any] | None = None, **more: str) -> dict[str, str]:
    config = config_of(function, args, topic_prefix=prefix, **more)
    return {**config, "name": prefix.rstrip("."), "connector.class": "DltSource", **JSON}


def ids(kafka: Kafka, topic: str) -> list[int]:
    return [int(json.loads(message.value())["id"]) for message in kafka.read_committed(topic)]


def test_a_bounded_run_reads_the_source_once_and_the_next_one_goes_on(kafka: Kafka, prefix: str) -> None:
    topic = kafka.create(f"{prefix}numbers")
    offsets = Offsets()
    for rows in (250, 250, 600):
        with RunningTask(given(prefix, "numbers", {"rows": rows}), kafka.worker(), offsets=offsets, bounded=True) as task:
            assert not task.join().failed
    assert ids(kafka, topic) == list(range(600))


def test_a_source_without_a_cursor_stores_its_state_at_the_end_of_a_run(kafka: Kafka, prefix: str) -> None:
    topic, offsets = kafka.create(f"{prefix}all"), Offsets()
    for _ in range(2):
        with RunningTask(given(prefix, "counting", {"rows": 5}), kafka.worker(), offsets=offsets, bounded=True) as task:
            assert not task.join().failed
    assert ids(kafka, topic) == [*range(5), *range(5)]
    stored = {partition["resource"]: offset for partition, offset in offsets.all(prefix.rstrip("."))}
    assert json.loads(stored[""]["state"]) == {"runs": 2}


def test_many_rows_go_to_kafka_as_columns(kafka: Kafka, prefix: str) -> None:
    kafka.create(f"{prefix}numbers")
    with RunningTask(given(prefix, "numbers", {"rows": 3000, "page": 1000, "pause": 1.0}), kafka.worker()) as task:
        eventually(lambda: batch_forms(prefix.rstrip(".")).get("columns"), what="columns")
        assert not task.stop().failed


@pytest.mark.parametrize("command", [TaskCommand.STOP, TaskCommand.PAUSE])
def test_a_wait_of_the_source_delays_neither_a_stop_nor_a_pause(kafka: Kafka, prefix: str, command: TaskCommand) -> None:
    topic = kafka.create(f"{prefix}waiting")
    with RunningTask(given(prefix, "waiting", {"seconds": 3600}), kafka.worker()) as task:
        eventually(lambda: kafka.end(topic) == 1, what="the first row")
        task.commands.give(command)
        if command is TaskCommand.PAUSE:
            task.wait_for(State.PAUSED)
        assert not task.stop().failed


@pytest.mark.parametrize(("function", "table"), [("numbers", "numbers"), ("derived", "squares"), ("counting", "all")])
def test_exactly_once_a_stopped_run_is_in_the_topic_as_far_as_its_state(
    kafka: Kafka, kafka_bootstrap: str, prefix: str, unique: Callable[[str], str], function: str, table: str
) -> None:
    topic, worker = kafka.create(f"{prefix}{table}"), exactly_once_worker(kafka_bootstrap, unique)
    rows = {"rows": 400, **({} if function == "counting" else {"page": 100, "pause": 0.5})}
    config = {**given(prefix, function, rows), "transaction.boundary": "connector", "dlt.run.interval.ms": "86400000"}
    with opened_stores(worker) as opened:
        before = kafka.end(topic)
        with RunningTask(config, worker, store=opened(config)) as task:
            eventually(lambda: kafka.end(topic) > before, what="the first rows")
            task.stop()
        with RunningTask(config, worker, store=opened(config), bounded=True) as task:
            assert not task.join().failed
    found = ids(kafka, topic)
    assert sorted(set(found)) == list(range(400))
    assert len(found) == 400 or (function == "counting" and len(found) == 800)  # the first run may have been complete


@pytest.fixture
def api() -> Iterator[RestApi]:
    with closing(RestApi(300, limited_every=3)) as started:
        yield started


def test_a_rest_api_in_a_topic(kafka: Kafka, prefix: str, api: RestApi) -> None:
    topic = kafka.create(f"{prefix}events")
    config = given(prefix, "rest", {"url": api.url}, dlt_nested="struct")
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    messages = kafka.read(topic, 300)
    values = [json.loads(message.value()) for message in messages]
    assert [each["id"] for each in values] == list(range(300))
    assert values[5]["address"] == {"city": "city-5"}
    assert values[5]["lines"] == [{"sku": "s5-0"}, {"sku": "s5-1"}]
    assert json.loads(messages[7].key()) == {"id": 7}
    assert api.limited


def test_a_validation_makes_the_source_and_recommends_its_resources(kafka_bootstrap: str, unique: Callable[[str], str]) -> None:
    worker = worker_for(kafka_bootstrap, unique)
    config = {"connector.class": "DltSource", "tasks.max": "1", **config_of("derived")}
    found = validate_config(config, worker)
    assert found.errors == []
    [resources] = [each.value for each in found.configs if each.value is not None and each.value.name == "dlt.resources"]
    assert resources.recommended_values == ("numbers", "squares")
    wrong = validate_config({**config, "dlt.args": '{"row": 1}'}, worker)
    assert ["dlt.args" in each for each in wrong.errors] == [True]
    assert validate_config({**config, "dlt.source": "no.such.function"}, worker, offline=True).errors == []
