"""Java sinks on a real broker: published plugins, mixed chains, bad records, and tasks that retry, rewind and pause."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest

from sluiceway.api import SourceRecord
from sluiceway.data import STRING_SCHEMA
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.storage.model import State
from support.bad_records import PREFIX, committed, headers, tolerant
from support.database import DatabaseForTest
from support.engine import RunningTask
from support.engine_connectors import SOURCE, lines, script, scripted_sink
from support.eventually import LIMIT, eventually
from support.java_plugins import (
    CONNECT_FILE,
    compiled_plugin,
    debezium_jdbc_folder,
    fetch_runtime,
    forget_plugins,
    java_processes,
    plugin_folder,
)
from support.java_sinks import file_sink, scripted
from support.kafka import Kafka
from support.peer import PeerStandalone

pytestmark = pytest.mark.kafka
Names = Callable[[str], str]

_STRINGS = "org.apache.kafka.connect.storage.StringConverter"
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_TRANSFORM_COMMON = ("com.github.jcustenborder.kafka.connect:kafka-connect-transform-common:0.1.0.14",)
_RENAME = "com.github.jcustenborder.kafka.connect.transform.common.PatternRename$Value"
_MONGO = ("org.mongodb.kafka:mongo-kafka-connect:2.0.1",)


@pytest.fixture(scope="module")
def plugin_path(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A ``plugin.path`` with the Java plugins of this module, which are preferred to Python classes of the same names."""
    fetch_runtime()
    folder = tmp_path_factory.mktemp("plugins")
    plugin_folder(folder, "connect-file", CONNECT_FILE)
    plugin_folder(folder, "transform-common", _TRANSFORM_COMMON)
    debezium_jdbc_folder(folder)
    plugin_folder(folder, "mongo", _MONGO)
    sources = Path(__file__).parents[1] / "support" / "java"
    compiled_plugin(folder, "scripted", [sources / "ScriptedSink.java", sources / "OddConverter.java"])
    use_plugin_path({"plugin.path": str(folder), "plugin.java": "prefer"})
    yield folder
    forget_plugins()


def chain(**transforms: dict[str, str]) -> dict[str, str]:
    """Return the keys of transforms by alias."""
    keys = {f"transforms.{alias}.{key}": value for alias, options in transforms.items() for key, value in options.items()}
    return {"transforms": ",".join(transforms), **keys}


def test_a_restarted_file_sink_continues_at_its_committed_offset(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    copy = tmp_path / "out"
    for number in range(2):
        kafka.produce(topic, *(f"{number}-{line}" for line in range(1500)))
        with RunningTask(file_sink(name, topic, copy), kafka.worker(), bounded=True) as task:
            result = task.join()
        assert result.records == 1500, result.trace
    assert lines(copy) == [f"{number}-{line}" for number in range(2) for line in range(1500)]
    assert kafka.committed(f"connect-{name}") == {(topic, 0): 3000}


# A chain whose stages all run in Java, and one with a stage that only Python has: then values cross.
_IN_JAVA: dict[str, dict[str, str]] = {"hoist": {"type": "org.apache.kafka.connect.transforms.HoistField$Value", "field": "line"}}
_MIXED = {**_IN_JAVA, "same": {"type": "support.java_plugins.Same"}}


@pytest.mark.parametrize("stages", [_IN_JAVA, _MIXED], ids=["java", "mixed"])
def test_transforms_of_a_jar_run_between_kafkas_own(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, tmp_path: Path, stages: dict[str, dict[str, str]]
) -> None:
    rename = {"type": _RENAME, "field.pattern": "li(.*)", "field.replacement": "text_$1"}
    insert = {"type": "org.apache.kafka.connect.transforms.InsertField$Value", "offset.field": "at"}
    kafka.produce(topic, *(f'{{"schema":{{"type":"string"}},"payload":"{line}"}}' for line in range(40)))
    config = file_sink(name, topic, tmp_path / "out", value_converter=_JSON)
    with RunningTask({**config, **chain(**stages, rename=rename, insert=insert)}, kafka.worker(), bounded=True) as task:
        result = task.join()
    assert not result.failed, result.trace
    assert lines(tmp_path / "out") == [f"Struct{{text_ne={line},at={line}}}" for line in range(40)]


@pytest.mark.parametrize("stages", [{}, {"same": {"type": "support.java_plugins.Same"}}], ids=["java", "mixed"])
def test_a_task_retries_rewinds_pauses_commits_and_reports(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, dlq: str, tmp_path: Path, stages: dict[str, dict[str, str]]
) -> None:
    calls = tmp_path / "calls"
    kafka.produce(topic, "a", "timeout", "rewind", "pause", "commit", "group")
    config = {**scripted(name, topic, calls), **chain(**stages), **tolerant(dlq)}
    with RunningTask(config, kafka.worker(offset_flush_interval_ms="60000")) as task:
        eventually(lambda: calls.exists() and any(line.startswith("group") for line in lines(calls)), what="the calls")
        eventually(lambda: committed(kafka, name, topic) == 6, what="the requested commit")
        kafka.produce(topic, "report", "made", "b", key=b"key", headers=[("h", b"1")])
        eventually(lambda: lines(calls)[-1] == "b", what="the last record")
        task.stop()
    done = lines(calls)
    assert done[0] == "open 1 1"
    assert done[-3:] == ["preCommit", "close 1", "stop"]
    assert done.count("rewind") == 2
    assert {line for line in done if line.startswith("group")} == {f"group connect-{name} true true"}
    reported, made = kafka.read(dlq, 2)
    assert (reported.key(), reported.value(), reported.headers()[0]) == (b"key", b"report", ("h", b"1"))
    assert (made.key(), made.value()) == (b"k", b"v")
    context = headers(reported)
    assert context[f"{PREFIX}class.name"] == "org.apache.kafka.connect.sink.SinkTask"
    assert context[f"{PREFIX}exception.class.name"] == "java.lang.IllegalStateException"
    assert context[f"{PREFIX}exception.message"] == "not this one"
    assert committed(kafka, name, topic) == 9


def test_the_error_of_a_java_task_fails_it_with_the_java_trace(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    kafka.produce(topic, "a", "fail")
    with RunningTask(scripted(name, topic, tmp_path / "calls"), kafka.worker()) as task:
        result = task.join()
    assert result.failed
    assert (result.trace or "").startswith("java.lang.IllegalArgumentException: cannot write fail\n\tat org.sluiceway.tests.")
    assert task.reports.states[-1] is State.FAILED


@pytest.mark.long
@pytest.mark.parametrize("stages", [{}, {"same": {"type": "support.java_plugins.Same"}}], ids=["java", "mixed"])
def test_a_busy_put_that_ends_before_the_timeout_is_awaited_and_committed(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, tmp_path: Path, stages: dict[str, dict[str, str]]
) -> None:
    calls = tmp_path / "calls"
    kafka.produce(topic, "a", "hang", "b")
    config = {**scripted(name, topic, calls, hang="4000"), **chain(**stages)}
    with RunningTask(config, kafka.worker(task_shutdown_graceful_timeout_ms="10000")) as task:
        eventually(lambda: calls.exists() and "a" in lines(calls), what="the first record")
        result = task.stop()
    assert not result.failed, result.trace
    assert lines(calls)[1:4] == ["a", "hang", "b"]
    assert lines(calls)[-3:] == ["preCommit", "close 1", "stop"]
    assert committed(kafka, name, topic) == 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("interrupted", "stages"),
    [("throw", {}), ("return", {}), ("return", {"same": {"type": "support.java_plugins.Same"}}), ("ignore", {})],
)
def test_a_hanging_put_ends_when_the_task_must_stop_and_its_records_are_read_again(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, tmp_path: Path, interrupted: str, stages: dict[str, dict[str, str]]
) -> None:
    calls, seconds = tmp_path / "calls", 5
    kafka.produce(topic, "a", "hang", "b")
    config = {**scripted(name, topic, calls, interrupted=interrupted), **chain(**stages)}
    with RunningTask(config, kafka.worker(task_shutdown_graceful_timeout_ms=str(seconds * 1000))) as task:
        eventually(lambda: calls.exists() and "a" in lines(calls), what="the first record")
        result = task.stop()
    assert result.failed is (interrupted == "ignore"), result.trace
    if interrupted == "ignore":
        assert "Its Java process was killed" in (result.trace or "")
    else:
        assert lines(calls)[-1] == "stop"
    assert java_processes() == []
    assert kafka.committed(f"connect-{name}").get((topic, 0), 0) <= 1
    with RunningTask({**config, "hang": "0"}, kafka.worker(), bounded=True) as task:
        assert not task.join().failed
    assert {"a", "hang", "b"} <= set(lines(calls))
    assert committed(kafka, name, topic) == 3


@pytest.mark.long
@pytest.mark.parametrize(
    ("stage", "by", "settings"),
    [
        ("VALUE_CONVERTER", _JSON, {}),
        ("KEY_CONVERTER", _JSON, {"value.converter": _STRINGS, "key.converter": _JSON}),
        (
            "TRANSFORMATION",
            _RENAME,
            {"value.converter": _STRINGS, **chain(r={"type": _RENAME, "field.pattern": "x", "field.replacement": "y"})},
        ),
    ],
)
def test_dead_letter_queue_records_have_connects_headers(
    plugin_path: Path,
    kafka: Kafka,
    topic: str,
    name: str,
    dlq: str,
    tmp_path: Path,
    stage: str,
    by: str,
    settings: dict[str, str],
) -> None:
    kafka.produce(topic, "{bad", key=b"{bad", headers=[("own", b"x")])
    config = {**file_sink(name, topic, tmp_path / "out"), "value.converter": _JSON, "key.converter": _STRINGS, **settings}
    with RunningTask({**config, **tolerant(dlq)}, kafka.worker(), bounded=True) as task:
        result = task.join()
    assert not result.failed, result.trace
    (record,) = kafka.read(dlq, 1)
    assert (record.key(), record.value(), record.headers()[0]) == (b"{bad", b"{bad", ("own", b"x"))
    context = headers(record)
    assert (context[f"{PREFIX}stage"], context[f"{PREFIX}class.name"]) == (stage, by)
    assert context[f"{PREFIX}exception.class.name"].startswith(("org.apache.kafka.", "java.lang."))
    assert context[f"{PREFIX}exception.stacktrace"].startswith(context[f"{PREFIX}exception.class.name"])
    assert "\tat " in context[f"{PREFIX}exception.stacktrace"]
    assert committed(kafka, name, topic) == 1


@pytest.mark.long
@pytest.mark.timeout(400)
def test_dead_letter_queue_headers_equal_those_of_kafka_connect(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, unique: Names, tmp_path: Path
) -> None:
    bad = ("{bad", '{"schema":{"type":"int32"},"payload":"x"}', '{"schema":{"type":"int32"},"payload":5}')
    kafka.produce(topic, *bad, key=b"k", headers=[("own", b"x")])
    extract = {"type": "org.apache.kafka.connect.transforms.ExtractField$Value", "field": "f"}

    def rejected(connector: str, run: Callable[[dict[str, str]], None]) -> list[list[tuple[str, bytes | None]]]:
        dlq = unique("dlq")
        run(
            {
                **file_sink(connector, topic, tmp_path / connector, value_converter=_JSON),
                **chain(extract=extract),
                **tolerant(dlq),
            }
        )
        return [_without_frames(record.headers()) for record in kafka.read(dlq, len(bad))]

    def here(config: dict[str, str]) -> None:
        with RunningTask(config, kafka.worker(), bounded=True) as task:
            assert not task.join(LIMIT).failed

    def there(config: dict[str, str]) -> None:
        del config["task.class"]
        with PeerStandalone(kafka.bootstrap, tmp_path / "peer", [config]):
            eventually(lambda: committed(kafka, config["name"], topic) == len(bad), what="Kafka Connect's commit")

    assert rejected(name, here) == rejected(unique("peer"), there)


def _without_frames(found: list[tuple[str, bytes | None]]) -> list[tuple[str, bytes | None]]:
    """Return headers without the connector's name and the trace's lines after the first."""
    kept = [(key, value) for key, value in found if key != f"{PREFIX}connector.name"]
    trace = f"{PREFIX}exception.stacktrace"
    return [(key, value.split(b"\n")[0] if key == trace and value is not None else value) for key, value in kept]


@pytest.mark.long
def test_only_the_bad_records_of_a_batch_are_skipped(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, dlq: str, tmp_path: Path
) -> None:
    bad = {3, 4, 17, 99}
    kafka.produce(topic, *("{bad" if line in bad else f'{{"schema":{{"type":"int32"}},"payload":{line}}}' for line in range(100)))
    config = {**file_sink(name, topic, tmp_path / "out", value_converter=_JSON), **tolerant(dlq)}
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        result = task.join()
    assert result.records == 96, result.trace
    assert lines(tmp_path / "out") == [str(line) for line in range(100) if line not in bad]
    assert [int(headers(record)[f"{PREFIX}offset"]) for record in kafka.read(dlq, 4)] == sorted(bad)


@pytest.mark.long
def test_without_tolerance_the_records_before_the_bad_one_are_put_and_committed(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, tmp_path: Path
) -> None:
    kafka.produce(topic, '{"schema":{"type":"int32"},"payload":1}', "{bad", '{"schema":{"type":"int32"},"payload":2}')
    with RunningTask(file_sink(name, topic, tmp_path / "out", value_converter=_JSON), kafka.worker()) as task:
        result = task.join()
    assert result.failed
    assert "Tolerance exceeded in error handler" in (result.trace or "")
    assert "Caused by: org.apache.kafka.connect.errors.DataException" in (result.trace or "")
    assert lines(tmp_path / "out") == ["1"]
    assert committed(kafka, name, topic) == 1


def test_a_java_converter_and_a_java_transform_beside_a_python_task(
    plugin_path: Path, kafka: Kafka, topic: str, name: str
) -> None:
    made = script(name)
    hoist = {"type": "org.apache.kafka.connect.transforms.HoistField$Value", "field": "a"}
    rename = {"type": _RENAME, "field.pattern": "a", "field.replacement": "b"}
    kafka.produce(topic, *(str(line) for line in range(50)))
    config = {**scripted_sink(name, topic), "value.converter": "test.OddConverter", **chain(hoist=hoist, rename=rename)}
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        result = task.join(LIMIT)
    assert not result.failed, result.trace
    assert [dict(record.value) for record in made.taken] == [{"b": str(line)} for line in range(50)]


@pytest.mark.long
def test_a_java_converter_beside_a_python_source(plugin_path: Path, kafka: Kafka, topic: str, name: str) -> None:
    script(name, [SourceRecord({"p": 1}, {"o": line}, topic, f"line {line}", STRING_SCHEMA) for line in range(50)])
    config = {"name": name, "connector.class": SOURCE, "value.converter": "test.OddConverter", "errors.tolerance": "all"}
    expected = [f"line {line}" for line in range(50) if line % 10 != 5]
    with RunningTask(config, kafka.worker()) as task:
        assert kafka.values(topic, len(expected)) == expected
        task.stop()
    assert list(task.offsets.stored.values()) == [{"o": 49}]


@pytest.mark.long
def test_debeziums_jdbc_sink_creates_its_table_and_writes_rows(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, postgresql: DatabaseForTest
) -> None:
    schema = {
        "type": "struct",
        "fields": [{"type": "int32", "field": "id"}, {"type": "string", "optional": True, "field": "text"}],
    }
    rows = [{"id": number, "text": None if number % 10 == 0 else f"text {number}"} for number in range(300)]
    kafka.produce(topic, *(orjson.dumps({"schema": schema, "payload": row}) for row in rows))
    config = {
        "name": name,
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "task.class": "io.debezium.connector.jdbc.JdbcSinkConnectorTask",
        "topics": topic,
        "connection.url": postgresql.jdbc_url,
        "connection.username": postgresql.user,
        "connection.password": postgresql.password,
        "insert.mode": "upsert",
        "primary.key.mode": "record_value",
        "primary.key.fields": "id",
        "schema.evolution": "basic",
        "collection.name.format": "lines",
        "key.converter": _STRINGS,
        "value.converter": _JSON,
    }
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        result = task.join(LIMIT)
    assert not result.failed, result.trace
    assert postgresql.execute("SELECT id, text FROM lines ORDER BY id") == [(row["id"], row["text"]) for row in rows]


@pytest.mark.long
@pytest.mark.parametrize("stages", [{}, {"same": {"type": "support.java_plugins.Same"}}], ids=["java", "mixed"])
def test_debeziums_extract_new_record_state(
    plugin_path: Path, kafka: Kafka, topic: str, name: str, tmp_path: Path, stages: dict[str, dict[str, str]]
) -> None:
    row = {"type": "struct", "optional": True, "fields": [{"type": "int32", "field": "id"}, {"type": "string", "field": "text"}]}
    text = {"type": "string", "optional": True}
    schema = {
        "type": "struct",
        "name": "server.public.orders.Envelope",
        "fields": [{**row, "field": "before"}, {**row, "field": "after"}, {**text, "field": "op"}],
    }
    changes: list[dict[str, object]] = [
        {"before": None, "after": {"id": 1, "text": "new"}, "op": "c"},
        {"before": {"id": 1, "text": "new"}, "after": {"id": 1, "text": "changed"}, "op": "u"},
        {"before": {"id": 1, "text": "changed"}, "after": None, "op": "d"},
    ]
    kafka.produce(topic, *(orjson.dumps({"schema": schema, "payload": change}) for change in changes), None)
    unwrap = {"type": "io.debezium.transforms.ExtractNewRecordState"}
    config = {**file_sink(name, topic, tmp_path / "out", value_converter=_JSON), **chain(**stages, unwrap=unwrap)}
    with RunningTask(config, kafka.worker(), bounded=True) as task:
        result = task.join(LIMIT)
    assert not result.failed, result.trace
    assert lines(tmp_path / "out") == ["Struct{id=1,text=new}", "Struct{id=1,text=changed}", "null"]  # one tombstone
    assert committed(kafka, name, topic) == 4


@pytest.mark.long
def test_mongos_sink_refuses_records_with_its_own_exception(plugin_path: Path, kafka: Kafka, topic: str, name: str) -> None:
    kafka.produce(topic, "no document")
    config = {
        "name": name,
        "connector.class": "com.mongodb.kafka.connect.MongoSinkConnector",
        "task.class": "com.mongodb.kafka.connect.sink.MongoSinkTask",
        "topics": topic,
        "connection.uri": "mongodb://127.0.0.1:1/?serverSelectionTimeoutMS=500",
        "database": "d",
        "collection": "c",
        "key.converter": _STRINGS,
        "value.converter": _STRINGS,
    }
    with RunningTask(config, kafka.worker()) as task:
        result = task.join()
    assert result.failed
    assert (result.trace or "").startswith("org.apache.kafka.connect.errors.DataException: ")
