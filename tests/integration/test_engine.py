"""The records engine on a real broker: what comes through, and what survives stops, kills and rebalances."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from sluiceway.errors import RetriableError
from sluiceway.runtime.sink import subscription
from sluiceway.runtime.task import TaskCommand
from sluiceway.storage.model import State
from support.engine import Offsets, RunningTask
from support.engine_connectors import SINK, SOURCE, dotted, script, scripted_sink
from support.eventually import eventually
from support.kafka import Kafka

pytestmark = pytest.mark.kafka

Names = Callable[[str], str]


def file_source(name: str, topic: str, file: Path, **more: str) -> dict[str, str]:
    return {"name": name, "connector.class": "FileStreamSource", "file": str(file), "topic": topic, **dotted(more)}


def file_sink(name: str, topic: str, file: Path, **more: str) -> dict[str, str]:
    return {"name": name, "connector.class": "FileStreamSink", "file": str(file), "topics": topic, **dotted(more)}


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


def test_lines_go_from_file_to_file_and_appended_ones_soon_after(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    source, copy = tmp_path / "in", tmp_path / "out"
    source.write_text("foo\nbar\n")
    with (
        RunningTask(file_source(name, topic, source), kafka.worker(value_converter="JsonConverter")) as moving,
        RunningTask(file_sink(f"{name}-sink", topic, copy), kafka.worker(value_converter="JsonConverter")),
    ):
        eventually(lambda: lines(copy) == ["foo", "bar"])
        with source.open("a") as out:
            out.write("baz\n")
        eventually(lambda: lines(copy) == ["foo", "bar", "baz"], within=3)
    assert kafka.values(topic, 3)[0] == '{"schema":{"type":"string","optional":false},"payload":"foo"}'
    assert moving.reports.topics == [topic]
    assert kafka.committed(f"connect-{name}-sink") == {(topic, 0): 3}


def test_a_restarted_source_goes_on_at_its_stored_offset(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    source, offsets = tmp_path / "in", Offsets()
    for number in range(3):
        with source.open("a") as out:
            out.write(f"{number}\n")
        with RunningTask(file_source(name, topic, source), kafka.worker(), offsets=offsets, bounded=True) as task:
            assert task.join().records == 1
    assert kafka.values(topic, 3) == ["0", "1", "2"]


def test_a_restarted_sink_goes_on_at_its_committed_offset(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    copy = tmp_path / "out"
    for number in range(3):
        kafka.produce(topic, str(number))
        with RunningTask(file_sink(name, topic, copy), kafka.worker(), bounded=True) as task:
            assert task.join().records == 1
    assert lines(copy) == ["0", "1", "2"]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 3}


def _run_source_until_killed(config: dict[str, str], worker: dict[str, str], log: str) -> None:
    class Logged(Offsets):
        def put(self, connector: str, offsets: Any) -> None:
            with Path(log).open("a") as out:
                out.write(json.dumps(offsets[-1][1]) + "\n")

    with RunningTask(config, worker, offsets=Logged()) as task:
        task.join(within=600)


def test_a_killed_source_loses_nothing_and_repeats_only_what_followed_its_last_commit(
    kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    source, log = tmp_path / "in", tmp_path / "commits"
    written = [f"line {number:07d}" for number in range(400_000)]
    source.write_text("".join(f"{line}\n" for line in written))
    config, worker = file_source(name, topic, source), kafka.worker(offset_flush_interval_ms="50")
    victim = multiprocessing.get_context("spawn").Process(target=_run_source_until_killed, args=(config, worker, str(log)))
    victim.start()
    eventually(lambda: len(lines(log)) >= 2, within=60)
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGKILL)
    victim.join(30)
    position = json.loads(lines(log)[-1])["position"]
    produced = kafka.end(topic)
    offsets = Offsets()
    offsets.put(name, [({"filename": str(source)}, {"position": position})])
    with RunningTask(config, worker, offsets=offsets, bounded=True) as task:
        again = task.join().records
    assert position % len("line 0000000\n") == 0
    assert position // len("line 0000000\n") + again == len(written)
    everything = Counter(kafka.values(topic, produced + again))
    assert set(everything) == set(written)
    assert position // len("line 0000000\n") <= produced, "an offset was stored ahead of its record"
    repeated = [line for line, count in everything.items() if count > 1]
    assert all(line >= written[position // len("line 0000000\n")] for line in repeated)


def test_a_rebalance_between_two_tasks_of_a_sink_loses_nothing(kafka: Kafka, unique: Names, name: str) -> None:
    topic = kafka.create(unique("engine"), partitions=4)
    made = script(name)
    worker = kafka.worker(offset_flush_interval_ms="100")
    sent = 0

    def send(count: int) -> None:
        nonlocal sent
        for _ in range(count):
            kafka.produce(topic, str(sent), partition=sent % 4)
            sent += 1

    def taken() -> set[str]:
        with made.lock:
            return {record.value for record in made.taken}

    send(20)
    with RunningTask(scripted_sink(name, topic), worker, task=0):
        eventually(lambda: len(taken()) == 20)
        with RunningTask(scripted_sink(name, topic), worker, task=1) as second:
            eventually(lambda: made.names().count("open") >= 3, what="the second task's assignment")
            send(20)
            eventually(lambda: len(taken()) == 40)
            assert second.result is None
        send(20)
        eventually(lambda: len(taken()) == 60)
    assert taken() == {str(number) for number in range(60)}
    assert len(made.taken) == 60, "a clean rebalance repeats nothing"
    assert sum(kafka.committed(f"connect-{name}").values()) == 60
    held: Counter[Any] = Counter()
    for call in made.calls:
        if call[0] in ("open", "close"):
            held.update(dict.fromkeys(call[1], 1 if call[0] == "open" else -1))
            assert set(held.values()) <= {0, 1}, "a partition was with two tasks at once"


def test_each_connector_can_have_its_own_converters(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    source, copy = tmp_path / "in", tmp_path / "out"
    source.write_text("foo\n")
    worker = kafka.worker(value_converter="JsonConverter")
    own = {"value_converter": "JsonConverter", "value_converter_schemas_enable": "false"}
    with RunningTask(file_source(name, topic, source, **own), worker, bounded=True) as task:
        task.join()
    with RunningTask(file_sink(name, topic, copy, value_converter="StringConverter"), worker, bounded=True) as task:
        task.join()
    assert lines(copy) == ['"foo"']


def test_topics_regex_takes_whole_names_and_several_topics(kafka: Kafka, unique: Names, name: str, tmp_path: Path) -> None:
    base = unique("regex")
    for suffix in ("a", "b", "bc"):
        kafka.produce(kafka.create(f"{base}-{suffix}"), suffix)
    pattern = rf"{base}-(?:[ab]|\d)"
    config = {"name": name, "connector.class": "FileStreamSink", "file": str(tmp_path / "out"), "topics.regex": pattern}
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        assert task.join().records == 2
    assert sorted(lines(tmp_path / "out")) == ["a", "b"]
    assert sorted(task.reports.topics) == [f"{base}-a", f"{base}-b"]


def test_topics_regex_finds_topics_that_come_later(
    kafka: Kafka, unique: Names, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "_REFRESH_SECONDS", 0.1)
    base = unique("regex")
    made = script(name)
    config = {"name": name, "connector.class": SINK, "topics.regex": f"{base}-.*"}
    with RunningTask(config, kafka.worker()):
        for number, suffix in enumerate(("a", "b")):
            kafka.produce(kafka.create(f"{base}-{suffix}"), suffix)
            eventually(lambda number=number: len(made.taken) > number)  # type: ignore[misc]
    assert [record.topic for record in made.taken] == [f"{base}-a", f"{base}-b"]


def test_a_bounded_sink_without_any_topic_ends(kafka: Kafka, unique: Names, name: str) -> None:
    script(name)
    config = {"name": name, "connector.class": SINK, "topics.regex": unique("none")}
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        assert not task.join().failed


def test_a_paused_sink_takes_nothing_keeps_its_membership_and_goes_on(
    kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    copy = tmp_path / "out"
    kafka.produce(topic, "a")
    session = {"consumer_override_session_timeout_ms": "6000"}
    with RunningTask(file_sink(name, topic, copy, **session), kafka.worker()) as task:
        eventually(lambda: lines(copy) == ["a"])
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        assert kafka.committed(f"connect-{name}") == {(topic, 0): 1}
        kafka.produce(topic, "b")
        asked = task.commands._asked
        eventually(lambda: task.commands._asked > asked + 5)
        group = kafka.admin.describe_consumer_groups([f"connect-{name}"])[f"connect-{name}"].result(10)
        assert [member.client_id for member in group.members] == [f"connector-consumer-{name}-0"]
        assert lines(copy) == ["a"]
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: lines(copy) == ["a", "b"])
    assert task.reports.states == [State.RUNNING, State.PAUSED, State.RUNNING]


def test_a_paused_source_stops_and_goes_on_without_a_gap(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("a\n")
    with RunningTask(file_source(name, topic, source), kafka.worker()) as task:
        eventually(lambda: kafka.end(topic) == 1)
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        assert task.offsets.get(name, [{"filename": str(source)}]) == [{"position": 2}]
        with source.open("a") as out:
            out.write("b\n")
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: kafka.end(topic) == 2)
    assert kafka.values(topic, 2) == ["a", "b"]


def test_a_sink_that_asks_for_patience_gets_the_same_records_again(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a", "b")
    made = script(name, RetriableError("not now"), RetriableError("not yet"))
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.taken) == 2)
        kafka.produce(topic, "c")
        eventually(lambda: len(made.taken) == 3)
        assert not task.stop().failed
    puts = [call[1] for call in made.calls if call[0] == "put"]
    assert puts[:3] == [puts[0]] * 3
    assert [record.value for record in made.taken] == ["a", "b", "c"]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 3}


def test_a_stop_while_a_sink_asks_for_patience_commits_only_what_it_took(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.taken) == 1)
        made.steps += [RetriableError("never")] * 100
        kafka.produce(topic, "b")
        eventually(lambda: len(made.steps) < 99)
        assert not task.stop().failed
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 1}


def test_records_that_were_not_taken_before_a_pause_come_again_after_it(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    made = script(name, *[RetriableError("not now")] * 1000)
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.steps) < 999)
        task.commands.give(TaskCommand.PAUSE)
        task.wait_for(State.PAUSED)
        made.steps.clear()
        task.commands.give(TaskCommand.RUN)
        eventually(lambda: [record.value for record in made.taken] == ["a"])


def test_a_record_that_cannot_be_read_fails_the_task_at_its_offset(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "1", "2", "not json", "4")
    made = script(name)
    worker = kafka.worker(value_converter="JsonConverter", value_converter_schemas_enable="false")
    for _ in range(2):
        with RunningTask(scripted_sink(name, topic), worker) as task:
            result = task.join()
        assert result.failed
        assert f"the record at offset 2 of {topic}-0 cannot be converted" in (result.trace or "").splitlines()[0]
        assert task.reports.states == [State.RUNNING, State.FAILED]
        assert kafka.committed(f"connect-{name}") == {(topic, 0): 2}
    assert [record.value for record in made.taken] == [1, 2]


def test_a_sink_that_fails_commits_what_it_took_before(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.taken) == 1)
        made.steps.append(OSError("disk full"))
        kafka.produce(topic, "b")
        result = task.join()
    assert (result.trace or "").startswith("builtins.OSError: disk full")
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 1}
    assert made.names()[-2:] == ["close", "stop"]


def test_an_abandoned_sink_commits_nothing(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "a")
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker()) as task:
        eventually(lambda: len(made.taken) == 1)
        task.stop(TaskCommand.ABANDON)
    assert "pre_commit" not in made.names()
    assert kafka.committed(f"connect-{name}") == {}


def test_a_sink_can_choose_where_to_start_and_go_back(kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, *"abcdef")
    went_back: list[bool] = []

    def start_at_three(task: Any, partitions: Any) -> None:
        task.context.offset(dict.fromkeys(partitions, 3))

    def go_back_once(task: Any, records: Any) -> None:
        if records and not went_back and records[-1].kafka_offset == 5:
            went_back.append(True)
            task.context.offset({(topic, 0): 4})

    made = script(name, on_open=start_at_three, on_put=go_back_once)
    with RunningTask(scripted_sink(name, topic), kafka.worker()):
        eventually(lambda: len(made.taken) >= 5)
    assert [record.value for record in made.taken] == ["d", "e", "f", "e", "f"]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 6}


def test_a_sink_can_hold_a_partition_and_let_it_go(kafka: Kafka, unique: Names, name: str) -> None:
    topic = kafka.create(unique("engine"), partitions=2)
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker()):
        eventually(lambda: "open" in made.names())
        told: list[str] = []

        def hold(task: Any, _records: Any) -> None:
            if not told:
                task.context.pause((topic, 0))
                told.append("held")
            elif told == ["held", "let go"]:
                task.context.resume((topic, 0))
                told.append("done")

        made.on_put = hold
        eventually(lambda: told == ["held"])
        kafka.produce(topic, "a", partition=0)
        kafka.produce(topic, "b", partition=1)
        eventually(lambda: [record.value for record in made.taken] == ["b"])
        told.append("let go")
        eventually(lambda: [record.value for record in made.taken] == ["b", "a"])


def test_a_bounded_sink_ends_at_the_offsets_seen_at_its_start(kafka: Kafka, unique: Names, name: str) -> None:
    topic = kafka.create(unique("engine"), partitions=3)
    kafka.produce(topic, "a", "b", partition=0)
    kafka.produce(topic, "c", partition=1)
    made = script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert task.join().records == 3
    assert sorted(record.value for record in made.taken) == ["a", "b", "c"]
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert task.join().records == 0


def test_a_bounded_sink_of_a_transactional_topic_ends_although_the_last_offset_is_a_marker(
    kafka: Kafka, topic: str, name: str
) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, "a")
    producer.commit_transaction(30)
    script(name)
    with RunningTask(scripted_sink(name, topic), kafka.worker(), bounded=True) as task:
        assert task.join().records == 1


def test_a_single_record_reaches_put_at_once(kafka: Kafka, topic: str, name: str) -> None:
    import time

    arrivals: list[float] = []
    made = script(name, on_put=lambda _task, records: records and arrivals.append(time.monotonic()))
    with RunningTask(scripted_sink(name, topic), kafka.worker()):
        eventually(lambda: "open" in made.names())
        latencies = []
        for number in range(10):
            sent = time.monotonic()
            kafka.produce(topic, "x")
            eventually(lambda number=number: len(arrivals) > number)  # type: ignore[misc]
            latencies.append(arrivals[-1] - sent)
    assert sorted(latencies)[5] < 0.15, latencies


def test_a_record_over_the_producers_limit_fails_the_task(kafka: Kafka, topic: str, name: str, tmp_path: Path) -> None:
    source = tmp_path / "in"
    source.write_text("small\n" + "x" * 1_500_000 + "\n")
    with RunningTask(file_source(name, topic, source), kafka.worker()) as task:
        result = task.join()
    assert "Unrecoverable exception from producer send callback" in (result.trace or "").splitlines()[0]
    assert task.offsets.get(name, [{"filename": str(source)}]) == [{"position": 6}]
    config = file_source(name, topic, source, producer_override_max_request_size="2000000")
    with RunningTask(config, kafka.worker(), offsets=task.offsets) as again:
        result = again.join()
    assert "MSG_SIZE_TOO_LARGE" in (result.trace or ""), "the topic's own limit was not reported"
    assert again.offsets.get(name, [{"filename": str(source)}]) == [{"position": 6}]


@pytest.fixture(autouse=True)
def _forget_scripts() -> Iterator[None]:
    from support.engine_connectors import Script

    yield
    Script.by_name.clear()


def test_a_source_tells_which_offsets_it_found(kafka: Kafka, topic: str, name: str) -> None:
    offsets, found = Offsets(), []
    offsets.put(name, [({"file": "p"}, {"position": 7})])
    script(name, on_start=lambda task: found.append(task.context.offset_storage_reader.offsets([{"file": "p"}, {"file": "q"}])))
    config = {"name": name, "connector.class": SOURCE, "topic": topic}
    with RunningTask(config, kafka.worker(), offsets=offsets, bounded=True) as task:
        task.join()
    assert found == [[{"position": 7}, None]]
