"""Java source connectors on a real broker: published plugins, exactly once, and plugins that fail or hang."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from sluiceway import discovery
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.java_plugins.hosts import plugin_metrics, reference, task_host
from sluiceway.runtime.task import TaskCommand, TaskResult
from sluiceway.storage.model import State
from support.engine import Commands, Offsets, RunningTask
from support.engine_connectors import lines
from support.eventually import LIMIT, eventually
from support.exactly_once import exactly_once_worker, opened_stores
from support.freeze import freeze
from support.java_plugins import (
    CAMEL_TIMER,
    CONNECT_FILE,
    SCRIPTED,
    compiled_plugin,
    fetch_runtime,
    forget_plugins,
    java_processes,
    plugin_folder,
)
from support.kafka import Kafka
from support.transactions import seen

pytestmark = pytest.mark.kafka

_FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
_FILE_TASK = "org.apache.kafka.connect.file.FileStreamSourceTask"


_SCRIPTED = "test.ScriptedSource"
_PLAIN_TASK = f"{_SCRIPTED}$PlainTask"
_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_CAMEL = "org.apache.camel.kafkaconnector.timer.CamelTimerSourceConnector"


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A ``plugin.path`` with published plugins and our scripted one, which are preferred to Python ones of the same names."""
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "connect-file", CONNECT_FILE)
    plugin_folder(folder, "camel-timer", CAMEL_TIMER)
    compiled_plugin(folder, "scripted", SCRIPTED)
    use_plugin_path({"plugin.path": str(folder), "plugin.java": "prefer"})
    yield folder
    forget_plugins()


@pytest.fixture
def scripted(plugin_path: Path, name: str, topic: str, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return a config of the scripted source; ``log`` has the calls of its task."""

    def config(**more: str) -> dict[str, str]:
        given = {key.replace("_", "."): value for key, value in more.items()}
        common = {"name": name, "connector.class": _SCRIPTED, "task.class": f"{_SCRIPTED}$ScriptedTask", "topic": topic}
        converters = {"key.converter": _STRINGS, "value.converter": _STRINGS}
        return {**common, **converters, "log": str(tmp_path / "log"), **given}

    return config


def file_source(name: str, topic: str, file: Path) -> dict[str, str]:
    config = {"name": name, "connector.class": _FILE_SOURCE, "task.class": _FILE_TASK, "file": str(file), "topic": topic}
    return {**config, "key.converter": _STRINGS, "value.converter": _STRINGS}


def test_lines_arrive_and_a_restart_continues_at_the_stored_offset(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    source, offsets = tmp_path / "in", Offsets()
    for number in range(2):
        with source.open("a") as out:
            out.writelines(f"{number}-{line}\n" for line in range(3000))
        with RunningTask(file_source(name, topic, source), kafka.worker(), offsets=offsets, bounded=True) as task:
            result = task.join()
        assert result.records == 3000, result.trace
    assert kafka.values(topic, 6000) == [f"{number}-{line}" for number in range(2) for line in range(3000)]
    assert list(offsets.stored.values()) == [{"position": source.stat().st_size}]


def test_keys_headers_and_timestamps_arrive_and_records_are_acknowledged(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    offsets = Offsets()
    with RunningTask(scripted(), kafka.worker(offset_flush_interval_ms="200"), offsets=offsets) as task:
        eventually(lambda: "v99 0 99" in lines(tmp_path / "log"))
        eventually(lambda: lines(tmp_path / "log")[-1] == "commit")
        assert task.stop().records == 100
    found = kafka.read(topic, 100)
    assert [(message.key(), message.value()) for message in found] == [(b"k%d" % n, b"v%d" % n) for n in range(100)]
    assert found[7].headers() == [("n", b"7"), ("é", "ü".encode())]
    assert found[7].timestamp() == (1, 1007)
    assert list(offsets.stored.values()) == [{"n": 99}]
    log = lines(tmp_path / "log")
    acknowledged = [line for line in log if line.startswith("v")]
    assert acknowledged == [f"v{n} 0 {n}" for n in range(100)]
    assert log[-2:] == ["commit", "stop"], "records are acknowledged before the commit"


@pytest.mark.long
def test_metrics_of_a_plugin_have_connects_tags_and_are_logged_at_the_end(
    plugin_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    plugin = discovery.connector_class(_SCRIPTED).plugin  # type: ignore[attr-defined]  # of Java classes
    with task_host("test", context="[orders|task-0] ") as slot:
        arguments = {"plugin": reference(plugin, f"{_SCRIPTED}$ScriptedTask")}
        task = slot.host().new("source", arguments, context=slot.context, handler=lambda *_: [None])
        task.call("start", {"config": {"topic": "t", "limit": "10"}})
        task.call("poll")
        [metric] = plugin_metrics(slot.host())
        task.call("stop")
    assert metric == ("next", "The next number.", {"connector": "orders", "task": "0", "s": "1"}, 10)
    assert "[orders|task-0] Metrics of the plugins: next{connector=orders, task=0, s=1}=10" in capfd.readouterr().err


@pytest.mark.long
def test_transforms_run_in_java_and_filtered_records_are_acknowledged(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    config = scripted(
        limit="20",
        transforms="odd,hoist",
        transforms_odd_type="org.apache.kafka.connect.transforms.Filter",
        transforms_odd_predicate="named",
        transforms_hoist_type="org.apache.kafka.connect.transforms.HoistField$Value",
        transforms_hoist_field="line",
        predicates="named",
        predicates_named_type="org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
        predicates_named_pattern="other",
        value_converter="org.apache.kafka.connect.json.JsonConverter",
        value_converter_schemas_enable="false",
    )
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert kafka.values(topic, 20)[3] == '{"line":"v3"}'
    with RunningTask(
        {**config, "predicates.named.pattern": ".*", "name": f"{config['name']}-2"}, kafka.worker(), bounded=True
    ) as task:
        assert not task.join().failed
    assert kafka.end(topic) == 20
    assert lines(tmp_path / "log").count("v3 none") == 1


@pytest.mark.long
def test_a_chain_with_a_python_stage_gets_the_same_records(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    config = scripted(limit="30", transforms="python", transforms_python_type="support.java_plugins.Exclaim")
    offsets = Offsets()
    with RunningTask(config, kafka.worker(offset_flush_interval_ms="200"), offsets=offsets) as task:
        eventually(lambda: "v29 0 29" in lines(tmp_path / "log"))
        result = task.stop()
    assert not result.failed, result.trace
    found = kafka.read(topic, 30)
    assert [(message.key(), message.value()) for message in found] == [(b"k%d" % n, b"v%d!" % n) for n in range(30)]
    assert (found[7].headers(), found[7].timestamp()) == ([("n", b"7"), ("é", "ü".encode())], (1, 1007))
    assert list(offsets.stored.values()) == [{"n": 29}]


@pytest.mark.parametrize("tolerance", ["none", "all"])
def test_records_that_fail_in_java_are_tolerated_or_fail_the_task(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, topic: str, tolerance: str, tmp_path: Path
) -> None:
    config = scripted(
        limit="30",
        errors_tolerance=tolerance,
        transforms="cast",
        transforms_cast_type="org.apache.kafka.connect.transforms.RegexRouter",
        transforms_cast_regex="(.*)",
        transforms_cast_replacement="$1",
        value_converter="test.OddConverter",
    )
    offsets = Offsets()
    with RunningTask(config, kafka.worker(), offsets=offsets, bounded=True) as task:
        result = task.join()
    if tolerance == "all":
        assert not result.failed, result.trace
        assert kafka.values(topic, 27) == [f"v{n}" for n in range(30) if n % 10 != 5]
        assert list(offsets.stored.values()) == [{"n": 29}]
        assert "v25 none" in lines(tmp_path / "log")
        return
    assert result.failed
    assert "Tolerance exceeded in error handler" in (result.trace or "")
    assert "DataException: not v5" in (result.trace or "")
    assert "at test.OddConverter.fromConnectData" in (result.trace or ""), result.trace
    assert kafka.values(topic, 5) == [f"v{n}" for n in range(5)]
    assert list(offsets.stored.values()) == [{"n": 4}]


@pytest.mark.long
@pytest.mark.parametrize("stages", [{}, {"transforms": "python", "transforms_python_type": "support.java_plugins.Same"}])
def test_a_tolerated_record_that_kafka_rejects_is_left_out_and_offsets_pass_it(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, unique: Callable[[str], str], stages: dict[str, str], tmp_path: Path
) -> None:
    topic = unique("small")
    kafka.admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "2000"})])[topic].result(LIMIT)
    offsets = Offsets()
    config = scripted(topic=topic, large="45", slow="20", errors_tolerance="all", **stages)
    with RunningTask(config, kafka.worker(offset_flush_interval_ms="100"), offsets=offsets, bounded=True) as task:
        result = task.join()
    assert not result.failed, result.trace
    assert sorted(kafka.values(topic, 99)) == sorted(f"v{n}" for n in range(100) if n != 45)
    assert [offset["n"] for offset in offsets.stored.values() if offset is not None] == [99]
    assert f"v45{'x' * 5000} none" in lines(tmp_path / "log")


@pytest.mark.long
@pytest.mark.parametrize("stages", [{}, {"transforms": "python", "transforms_python_type": "support.java_plugins.Same"}])
def test_a_record_that_kafka_rejects_fails_the_task_and_no_offset_passes_it(
    scripted: Callable[..., dict[str, str]], small: str, kafka: Kafka, stages: dict[str, str], tmp_path: Path
) -> None:
    config = scripted(topic=small, large="45", slow="20", **stages)
    offsets = failed_by_a_rejection(kafka, config)
    assert all(offset is None or offset["n"] < 45 for offset in offsets.stored.values())
    acknowledged = {line.split()[0] for line in lines(tmp_path / "log")}
    assert acknowledged.isdisjoint(f"v{n}{'x' * 5000 * (n == 45)}" for n in range(45, 100)), (
        "commitRecord passed the rejected record"
    )
    set_max_message_bytes(kafka, small, 20_000)
    with RunningTask(config, kafka.worker(), offsets=offsets, bounded=True) as task:
        assert not task.join().failed
    assert list(offsets.stored.values()) == [{"n": 99}]
    assert values_without_x(kafka, small) == {f"v{n}" for n in range(100)}


@pytest.mark.long
@pytest.mark.parametrize("then", ["", "wait"])
def test_offsets_of_records_before_one_that_the_client_refuses_are_committed(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, topic: str, then: str
) -> None:
    """``then`` is what the poll of the next batch does, which has begun."""
    limits = {"producer_override_max_request_size": "2000", "producer_override_batch_size": "1000"}
    config = scripted(limit="50", large="45", then=then, task_class=_PLAIN_TASK, **limits)
    offsets, worker = Offsets(), kafka.worker(task_shutdown_graceful_timeout_ms="10000")
    with RunningTask(config, worker, offsets=offsets) as task:
        result = task.join()
    assert result.failed
    assert "MSG_SIZE_TOO_LARGE" in (result.trace or ""), result.trace
    assert kafka.values(topic, kafka.end(topic)) == [f"v{n}" for n in range(45)]
    assert list(offsets.stored.values()) == [{"n": 44}]
    assert java_processes() == []


@pytest.mark.long
def test_a_rejected_record_of_a_plugin_without_acknowledgements_fails_its_task(
    plugin_path: Path, small: str, kafka: Kafka, name: str, tmp_path: Path
) -> None:
    source, offsets = tmp_path / "in", Offsets()
    written = [f"v{n}{'x' * 5000 * (n == 45)}\n" for n in range(100)]
    source.write_text("".join(written[:40]))
    committed, before = (sum(map(len, written[:count])) for count in (40, 45))
    config = file_source(name, small, source)
    with RunningTask(config, kafka.worker(offset_flush_interval_ms="100"), offsets=offsets) as task:
        eventually(lambda: list(offsets.stored.values()) == [{"position": committed}], what="a commit")
        with source.open("a") as out:
            out.write("".join(written[40:]))
        assert_failed_by_rejection(task.join())
    assert task.reports.states[-1] is State.FAILED
    (offset,) = offsets.stored.values()
    assert committed <= (offset or {})["position"] <= before
    set_max_message_bytes(kafka, small, 20_000)
    with RunningTask(config, kafka.worker(), offsets=offsets, bounded=True) as task:
        assert not task.join().failed
    assert list(offsets.stored.values()) == [{"position": source.stat().st_size}]
    assert values_without_x(kafka, small) == {f"v{n}" for n in range(100)}


@pytest.mark.long
def test_a_rejected_record_aborts_the_transaction_of_an_exactly_once_task(
    scripted: Callable[..., dict[str, str]], small: str, kafka: Kafka, unique: Callable[[str], str], tmp_path: Path
) -> None:
    worker = exactly_once_worker(kafka.bootstrap, unique)
    config = scripted(topic=small, large="45", slow="20")
    with opened_stores(worker) as stores, RunningTask(config, worker, store=stores({})) as task:
        result = task.join()
    assert_failed_by_rejection(result)
    written = [(message.value() or b"").decode() for message in seen(kafka.bootstrap, small)]
    assert written == [f"v{n}" for n in range(40)], "whole batches before the record, once"
    assert len(lines(tmp_path / "log")) < 50
    set_max_message_bytes(kafka, small, 20_000)
    with opened_stores(worker) as stores, RunningTask(config, worker, store=stores({}), bounded=True) as task:
        assert not task.join().failed
        assert stores({}).get(config["name"], [{"s": "1"}]) == [{"n": 99}]
    written = [(message.value() or b"").decode().rstrip("x") for message in seen(kafka.bootstrap, small)]
    assert written == [f"v{n}" for n in range(100)]


@pytest.fixture
def small(kafka: Kafka, unique: Callable[[str], str]) -> str:
    """A topic that takes only small records."""
    topic = unique("small")
    kafka.admin.create_topics([NewTopic(topic, 1, 1, config={"max.message.bytes": "2000"})])[topic].result(LIMIT)
    return topic


def set_max_message_bytes(kafka: Kafka, topic: str, size: int) -> None:
    entry = ConfigEntry("max.message.bytes", str(size), incremental_operation=AlterConfigOpType.SET)
    (future,) = kafka.admin.incremental_alter_configs(
        [ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])]
    ).values()
    future.result(LIMIT)


def assert_failed_by_rejection(result: TaskResult) -> None:
    trace = result.trace or ""
    assert result.failed
    assert "Unrecoverable exception from producer send callback: " in trace.splitlines()[0], trace  # as in Kafka Connect
    assert "MSG_SIZE_TOO_LARGE" in trace, trace


def failed_by_a_rejection(kafka: Kafka, config: dict[str, str]) -> Offsets:
    """Run a task until it fails because Kafka rejects a record; return the offsets that are stored then."""
    offsets = Offsets()
    with RunningTask(config, kafka.worker(offset_flush_interval_ms="100"), offsets=offsets) as task:
        assert_failed_by_rejection(task.join())
    assert task.reports.states[-1] is State.FAILED
    return offsets


def values_without_x(kafka: Kafka, topic: str) -> set[str]:
    return {message.value().decode().rstrip("x") for message in kafka.read(topic, kafka.end(topic))}


@pytest.mark.long
def test_a_camel_plugin_without_a_manifest_runs(plugin_path: Path, kafka: Kafka, topic: str, name: str) -> None:
    config = {"name": name, "connector.class": _CAMEL, "topics": topic, "camel.source.path.timerName": "t"}
    config |= {"camel.source.endpoint.period": "20", "key.converter": _STRINGS, "value.converter": _STRINGS}
    config["task.class"] = _CAMEL.replace("Connector", "Task")
    with RunningTask(config, kafka.worker(), sink=False) as task:
        eventually(lambda: kafka.end(topic) >= 3)
        result = task.stop()
    assert not result.failed, result.trace
    found = kafka.read(topic, kafka.end(topic))
    assert {key for key, _ in found[0].headers()} >= {"CamelHeader.firedTime"}


@pytest.mark.parametrize(
    ("then", "wanted"),
    [
        pytest.param("throw", "org.apache.kafka.connect.errors.ConnectException: The database is gone", marks=pytest.mark.long),
        ("oom", "java.lang.OutOfMemoryError: Java heap space"),
        pytest.param("overflow", "java.lang.StackOverflowError", marks=pytest.mark.long),
        pytest.param("exit", "ended unexpectedly with exit code 7", marks=pytest.mark.long),
        ("crash", "SIGSEGV"),
    ],
)
def test_a_task_that_ends_its_process_or_throws_is_failed_with_the_java_trace(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, topic: str, then: str, wanted: str
) -> None:
    offsets = Offsets()
    with RunningTask(scripted(then=then, sluiceway_java_opts="-Xmx48m"), kafka.worker(), offsets=offsets) as task:
        result = task.join()
    assert result.failed
    assert wanted in (result.trace or ""), result.trace
    if then != "exit":
        assert "ScriptedSource$PlainTask" in (result.trace or ""), result.trace
    assert ("sluiceway.java.opts, such as -Xmx1g" in (result.trace or "")) == (then == "oom")
    assert task.reports.states[-1] is State.FAILED
    assert len(kafka.values(topic, 100)) == 100
    assert list(offsets.stored.values()) == [{"n": 99}], "what was sent before is committed"


@pytest.mark.parametrize(
    ("then", "failed"),
    [*(pytest.param(each, False, marks=pytest.mark.long) for each in ("wait", "flag")), ("hang", True)],
)
def test_a_poll_that_hangs_is_interrupted_and_then_its_process_killed(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, topic: str, then: str, failed: bool
) -> None:
    seconds = 3 if failed else 10
    worker = kafka.worker(task_shutdown_graceful_timeout_ms=str(seconds * 1000))
    with RunningTask(scripted(then=then), worker) as task:
        kafka.read(topic, 100)
        result = task.stop()
    assert result.failed is failed, result.trace
    if failed:
        assert "Its Java process was killed" in (result.trace or "")
    assert java_processes() == []


@pytest.mark.long
def test_a_java_process_that_hangs_as_a_whole_is_killed(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, topic: str
) -> None:
    with RunningTask(scripted(then="wait"), kafka.worker(task_shutdown_graceful_timeout_ms="3000")) as task:
        kafka.read(topic, 100)
        (process,) = java_processes()
        freeze(process)
        result = task.stop()
    assert "Its Java process was killed" in (result.trace or "")
    assert java_processes() == []


@pytest.mark.long
@pytest.mark.parametrize(("then", "sent"), [("wait", 10), ("flag", 11), ("hang", 10)])
def test_a_poll_ahead_that_hangs_ends_when_the_task_stops_and_what_it_returns_is_sent(
    scripted: Callable[..., dict[str, str]], kafka: Kafka, topic: str, then: str, sent: int, tmp_path: Path
) -> None:
    commands, offsets = Commands(lambda _: TaskCommand.STOP if task.reports.topics else None), Offsets()
    config = scripted(limit="10", then=then, task_class=_PLAIN_TASK)
    worker = kafka.worker(task_shutdown_graceful_timeout_ms="5000")
    with RunningTask(config, worker, offsets=offsets, commands=commands) as task:
        assert task.join().failed is (then == "hang")
    assert java_processes() == []
    assert list(offsets.stored.values()) == [{"n": sent - 1}]
    assert kafka.values(topic, sent) == [f"v{n}" for n in range(sent)]
    if then != "hang":
        assert lines(tmp_path / "log") == ["stop"]
    with RunningTask({**config, "limit": "20", "then": ""}, worker, offsets=offsets, bounded=True) as task:
        assert not task.join().failed
    assert kafka.values(topic, 20) == [f"v{n}" for n in range(20)]


@pytest.mark.long
@pytest.mark.parametrize("chain", [{}, {"transforms": "python", "transforms_python_type": "support.java_plugins.Same"}])
def test_a_transaction_ends_where_the_task_requests_it(
    scripted: Callable[..., dict[str, str]],
    kafka_bootstrap: str,
    unique: Callable[[str], str],
    topic: str,
    chain: dict[str, str],
) -> None:
    worker = exactly_once_worker(kafka_bootstrap, unique)
    config = scripted(limit="30", transaction_boundary="connector", abort="", commit="", **chain)
    with opened_stores(worker) as stores, RunningTask(config, worker, store=stores({}), bounded=True) as task:
        result = task.join()
        assert not result.failed, result.trace
        wanted = [f"v{n}" for n in range(30) if n % 10 > 3]
        assert [(message.value() or b"").decode() for message in seen(kafka_bootstrap, topic)] == wanted
        assert stores({}).get(config["name"], [{"s": "1"}]) == [{"n": 29}]


def _run_until_killed(config: dict[str, str], worker: dict[str, str], plugin_path: str) -> None:
    use_plugin_path({"plugin.path": plugin_path, "plugin.java": "prefer"})
    with opened_stores(worker) as stores, RunningTask(config, worker, store=stores({})) as task:
        task.join(within=600)


@pytest.mark.long
def test_a_killed_exactly_once_task_writes_each_record_once_and_leaves_no_java_process(
    plugin_path: Path, scripted: Callable[..., dict[str, str]], kafka_bootstrap: str, unique: Callable[[str], str], topic: str
) -> None:
    worker = exactly_once_worker(kafka_bootstrap, unique)
    config = scripted(limit="2000", slow="50")
    kafka = Kafka(kafka_bootstrap)
    for _ in range(2):
        before = kafka.end(topic)  # counts the ends of transactions, too
        assert before < 1500, "there is something left to kill it at"
        spawn = multiprocessing.get_context("spawn")
        victim = spawn.Process(target=_run_until_killed, args=(config, worker, str(plugin_path)))
        victim.start()
        eventually(lambda: kafka.end(topic) >= before + 50)  # noqa: B023 (called at once)
        victim.kill()
        victim.join(LIMIT)
        eventually(lambda: java_processes() == [])
    with opened_stores(worker) as stores, RunningTask({**config, "slow": "0"}, worker, store=stores({}), bounded=True) as task:
        assert not task.join().failed
    assert [message.value() for message in seen(kafka_bootstrap, topic)] == [b"v%d" % n for n in range(2000)]
