"""Java sinks that read their partitions themselves, on a real broker: many batches by one request, errors, rebalances."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.java_plugins import sink_task
from sluiceway.metrics.client_statistics import ClientStatistics
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.bad_records import PREFIX, committed, headers, tolerant
from support.engine import RunningTask
from support.engine_connectors import lines
from support.eventually import eventually
from support.java_plugins import CONNECT_FILE, compiled_plugin, fetch_runtime, forget_plugins, plugin_folder
from support.java_sinks import file_sink, scripted
from support.kafka import Kafka

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_COUNT = 5000


@pytest.fixture(scope="module", autouse=True)
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "connect-file", CONNECT_FILE)
    compiled_plugin(folder, "scripted", [Path(__file__).parents[1] / "support" / "java" / "ScriptedSink.java"])
    use_plugin_path({"plugin.path": str(folder), "plugin.java": "prefer"})
    yield
    forget_plugins()


@pytest.fixture(autouse=True)
def _no_crossing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a task that is given messages by Python."""

    def crosses(messages: Any) -> Any:
        assert not messages, "messages cross to Java"
        return [], b""

    monkeypatch.setattr(sink_task, "packed_messages", crosses)


@pytest.fixture
def name(unique: Names) -> str:
    return unique("reads")


@pytest.fixture
def topic(kafka: Kafka, name: str) -> str:
    return kafka.create(name)


def envelope(number: int) -> str:
    return f'{{"schema":{{"type":"int32"}},"payload":{number}}}'


@pytest.mark.parametrize("retries", [{}, {"errors.retry.timeout": "1"}], ids=["skips", "retries"])
def test_bad_records_of_any_batch_are_skipped_and_the_others_are_put_once(
    kafka: Kafka, topic: str, name: str, tmp_path: Path, unique: Names, retries: dict[str, str]
) -> None:
    dlq = kafka.create(unique("dlq"))
    bad = {number for number in range(_COUNT) if number % 997 in (3, 4, 700)}
    kafka.produce(topic, *("{bad" if number in bad else envelope(number) for number in range(_COUNT)))
    config = {**file_sink(name, topic, tmp_path / "out", value_converter=_JSON), **tolerant(dlq), **retries}
    with RunningTask(config, kafka.worker()) as task:
        good = [str(number) for number in range(_COUNT) if number not in bad]
        eventually(lambda: (tmp_path / "out").exists() and len(lines(tmp_path / "out")) >= len(good), what="the good records")
        result = task.stop()
    assert not result.failed, result.trace
    assert lines(tmp_path / "out") == good
    assert result.records == len(good)
    reports = [headers(record) for record in kafka.read(dlq, len(bad))]
    assert [int(report[f"{PREFIX}offset"]) for report in reports] == sorted(bad)
    assert all("due to serialization error" in report[f"{PREFIX}exception.message"] for report in reports)
    assert committed(kafka, name, topic) == _COUNT


def test_without_tolerance_all_records_before_the_bad_one_are_put_and_committed(
    kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    kafka.produce(topic, *map(envelope, range(3333)), "{bad", *map(envelope, range(100)))
    with RunningTask(file_sink(name, topic, tmp_path / "out", value_converter=_JSON), kafka.worker()) as task:
        result = task.join()
    assert "Tolerance exceeded in error handler" in (result.trace or "")
    assert lines(tmp_path / "out") == [str(number) for number in range(3333)]
    assert committed(kafka, name, topic) == 3333


def test_messages_with_a_known_schema_are_converted_as_those_with_a_new_one(
    kafka: Kafka, topic: str, name: str, tmp_path: Path, unique: Names
) -> None:
    """A message that begins with a space is equal JSON, but its schema is parsed each time."""
    messages = _messages_with_schemas()
    found = []
    for before in ("", " "):
        topic, dlq, out = kafka.create(unique("schemas")), kafka.create(unique("dlq")), tmp_path / f"out{len(before)}"
        kafka.produce(topic, *(before + message for message in messages))
        config = {**file_sink(name, topic, out, value_converter=_JSON), **tolerant(dlq)}
        with RunningTask(config, kafka.worker()) as task:
            eventually(lambda out=out: out.exists() and lines(out)[-1:] == ["last"], what="the last message")
            assert not task.stop().failed
        bad = [headers(each) for each in kafka.read(dlq, len(messages) - len(lines(out)))]
        reasons = [re.sub(r"(column|offset): \d+", "", each[f"{PREFIX}exception.message"]) for each in bad]
        found.append((lines(out), [each[f"{PREFIX}offset"] for each in bad], reasons))
    assert found[0] == found[1]
    assert min(len(part) for part in found[0]) > 40


def _messages_with_schemas() -> list[str]:
    def struct(*fields: str) -> str:
        return f'{{"type":"struct","fields":[{",".join(fields)}],"optional":true,"doc":"\\"payload\\":{{}}}}"}}'

    number, text = '{"field":"a","type":"int32"}', '{"field":"b","type":"string","optional":true,"default":"d"}'
    decimal = '{"field":"c","type":"bytes","name":"org.apache.kafka.connect.data.Decimal","parameters":{"scale":"2"}}'
    inner = f'{{"field":"d",{struct(number, text)[1:]}'
    schemas = [struct(number, text), struct(number), struct(number, decimal), struct(inner), struct(text), struct(inner, text)]
    payloads = ['{"a":1,"b":"x}","c":"AfQ="}', '{ "a": 2, "b": "\\"{\\\\" }', '{"d":{"a":3,"b":"é\\u00e9"}}']
    payloads += ['{"b":null,"a":4}', "{}", "null", "5", '{"a":6},"payload":{"a":7}', '{"a":8},"more":{"a":9}']
    payloads += ['{"a":"text"}', '{"a":10', '{"a":11}}', '{"a":12,}', ""]
    messages = [f'{{"schema":{schema},"payload":{payload}}}' for schema in schemas for payload in payloads]
    others = ['{"schema":{"type":"int32"},"payload":1}', '{"schema":null,"payload":{"a":1}}', '{"schema":{},"payload":{}}', "{}"]
    others += [f'{{"schema":{schemas[0]},"payload":{payloads[0]}}} ', f'{{"payload":{payloads[0]},"schema":{schemas[0]}}}']
    return [*messages, *others, *messages, *others, '{"schema":{"type":"string"},"payload":"last"}']


@pytest.mark.long
@pytest.mark.parametrize("place", [0, 1700])
def test_the_error_of_a_put_in_any_batch_fails_the_task_after_one_call(
    kafka: Kafka, topic: str, name: str, tmp_path: Path, place: int
) -> None:
    kafka.produce(topic, *(f"r{number}" for number in range(place)), "fail", "r")
    with RunningTask(scripted(name, topic, tmp_path / "calls"), kafka.worker()) as task:
        result = task.join()
    assert "cannot write fail" in (result.trace or "")
    put = [line for line in lines(tmp_path / "calls") if re.fullmatch(r"r\d+", line)]
    assert put == [f"r{number}" for number in range(place)]


@pytest.mark.long
def test_retries_rewinds_pauses_and_commits_of_later_batches(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    calls, special = tmp_path / "calls", ("timeout", "rewind", "pause", "commit")
    values = [f"{special[number // 100 % 4] if number % 100 == 77 else 'r'}{number}" for number in range(2000)]
    kafka.produce(topic, *values)
    with RunningTask(scripted(name, topic, calls), kafka.worker(offset_flush_interval_ms="60000")) as task:
        eventually(lambda: calls.exists() and values[-1] in lines(calls), what="the last record")
        result = task.stop()
    assert not result.failed, result.trace
    found = [line for line in lines(calls) if line[-1].isdigit() and line.split()[0] not in ("open", "close")]
    assert list(dict.fromkeys(found)) == values, "each record, in order"
    again = {each for each in found if found.count(each) > 1}
    rewinds = [values.index(each) for each in values if each.startswith("rewind")]
    assert {values[place - 1] for place in rewinds} <= again
    assert committed(kafka, name, topic) == 2000


@pytest.mark.long
@pytest.mark.parametrize("place", [0, 1700])
def test_a_put_is_retried_after_the_time_that_the_task_asks_for(
    kafka: Kafka, topic: str, name: str, tmp_path: Path, place: int
) -> None:
    calls = tmp_path / "calls"
    kafka.produce(topic, *(f"r{number}" for number in range(place)), "wait", "r")
    with RunningTask(scripted(name, topic, calls), kafka.worker()) as task:
        eventually(lambda: calls.exists() and lines(calls)[-1:] == ["r"], what="the last record")
        assert not task.stop().failed
    first, second = (int(line.rpartition(" ")[2]) for line in lines(calls) if line.startswith("wait at "))
    assert second - first >= 1500, "milliseconds"


@pytest.mark.long
def test_a_paused_task_puts_nothing_and_continues_where_it_was(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    kafka.produce(topic, *(f"a{number}" for number in range(_COUNT)))
    with RunningTask(file_sink(name, topic, out), kafka.worker()) as task:
        eventually(lambda: out.exists() and len(lines(out)) > 0, what="the first record")
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        before = len(lines(out))
        kafka.produce(topic, *(f"b{number}" for number in range(10)))
        assert committed(kafka, name, topic) == before
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: len(lines(out)) >= _COUNT + 10, what="all records")
    assert lines(out) == [f"a{number}" for number in range(_COUNT)] + [f"b{number}" for number in range(10)]


def test_tasks_that_come_and_go_take_over_partitions_without_loss_or_repetition(
    kafka: Kafka, name: str, tmp_path: Path, unique: Names
) -> None:
    topic = kafka.create(unique("partitions"), 4)
    outputs = [tmp_path / "first", tmp_path / "second"]
    numbers = itertools.count()
    sent: list[str] = []

    def more() -> None:
        for partition in range(4):
            values = [f"{partition}-{next(numbers)}" for _ in range(200)]
            kafka.produce(topic, *values, partition=partition)
            sent.extend(values)

    def written(output: Path) -> int:
        return len(lines(output)) if output.exists() else 0

    def all_written() -> bool:
        return sum(map(written, outputs)) >= len(sent)

    tasks = [RunningTask(file_sink(name, topic, output), kafka.worker(), task=number) for number, output in enumerate(outputs)]
    more()
    with tasks[0]:
        eventually(all_written, what="the first records")
        with tasks[1]:
            eventually(lambda: more() is None and written(outputs[1]) > 0, what="partitions of the second task")
            eventually(all_written, what="the records of both")
            before = written(outputs[1])
            assert not tasks[1].stop().failed
        more()
        eventually(all_written, what="the records of the task that is left")
        assert not tasks[0].stop().failed
    assert written(outputs[1]) == before
    found = [line for output in outputs for line in lines(output)]
    assert sorted(found) == sorted(sent)
    for output, partition in itertools.product(outputs, range(4)):
        own = [int(line.partition("-")[2]) for line in lines(output) if line.startswith(f"{partition}-")]
        assert own == sorted(own), "in order"


@pytest.mark.long
def test_the_fetch_metrics_are_those_of_the_consumer_that_reads(
    kafka: Kafka, topic: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[ClientStatistics] = []
    monkeypatch.setattr(ClientStatistics, "__init__", remembering(made, ClientStatistics.__init__))
    kafka.produce(topic, *map(str, range(100)))
    config = file_sink(name, topic, tmp_path / "out", consumer_override_statistics_interval_ms="200")

    def consumed() -> list[dict[str, object]]:
        beans = [bean for bean in made[0].beans() if bean.type == "consumer-fetch-manager-metrics"] if made else []
        return [
            dict(bean.values)
            for bean in beans
            if bean.values.get("records-consumed-total") == 100 or "records-lag" in bean.values
        ]

    with RunningTask(config, kafka.worker(sluiceway_metrics_listener="http://127.0.0.1:0")):
        total, partition = eventually(lambda: found if len(found := consumed()) == 2 else None, what="the metrics")
    assert {total.get("records-lag-max"), partition.get("records-lag-max")} == {0.0}


def remembering(made: list[Any], init: Callable[..., None]) -> Callable[..., None]:
    def remembered(self: Any, *arguments: Any) -> None:
        made.append(self)
        init(self, *arguments)

    return remembered


@pytest.mark.long
def test_the_connectors_consumer_settings_apply(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    out, producer = tmp_path / "out", Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    for number in range(4):
        producer.begin_transaction()
        producer.produce(topic, f"t{number}")
        (producer.abort_transaction if number % 2 else producer.commit_transaction)(30)
    kafka.produce(topic, "end")
    config = file_sink(
        name, topic, out, consumer_override_isolation_level="read_committed", consumer_override_max_poll_records="1"
    )
    with RunningTask(config, kafka.worker(connector_client_config_override_policy="All")) as task:
        eventually(lambda: out.exists() and lines(out)[-1:] == ["end"], what="the last record")
        assert not task.stop().failed
    assert lines(out) == ["t0", "t2", "end"]
