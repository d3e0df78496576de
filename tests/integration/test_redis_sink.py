"""The Redis sink on a real server: each command, what is refused, ids of offsets, and a server that is full or away."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest
from redis import Redis

from sluiceway.api import SinkRecord
from sluiceway.connectors.redis import RedisSinkConnector
from sluiceway.connectors.redis.sink import RedisSinkTask
from sluiceway.data import FLOAT64_SCHEMA, OPTIONAL_STRING_SCHEMA, STRING_SCHEMA, Schema, Struct
from sluiceway.errors import ConfigError, ConnectError, RetriableError
from sluiceway.runtime.memory import MemorySinkContext
from sluiceway.testing import SinkConnectorContract
from support.engine import RunningTask
from support.eventually import eventually
from support.kafka import Kafka
from support.redis_server import RedisServer
from support.sink_tasks import put_until_taken

pytestmark = pytest.mark.kafka

ROW = Schema.struct({"name": STRING_SCHEMA, "price": FLOAT64_SCHEMA, "note": OPTIONAL_STRING_SCHEMA})


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with closing(RedisServer()) as server:
        server.start()
        yield server


@pytest.fixture
def client(server: RedisServer) -> Iterator[Redis]:
    with closing(Redis.from_url(server.url, decode_responses=True)) as client:
        yield client
        client.config_set("maxmemory", 0)


@pytest.fixture
def key(unique: Callable[[str], str]) -> str:
    return unique("key")


class Running:
    """A task without Kafka."""

    def __init__(self, server: RedisServer, key: str, command: str, **more: str) -> None:
        given = {name.replace("_", "."): value for name, value in more.items()}
        self.config = {"name": "n", "redis.uri": server.url, "redis.key": key, "redis.command": command, **given}
        self.context = MemorySinkContext(self.config)
        self.task = RedisSinkTask()
        self.task.initialize(self.context)
        self.task.start(self.config)

    def put(self, *records: SinkRecord) -> None:
        put_until_taken(self.task, self.context, records)

    @property
    def reasons(self) -> list[str]:
        return [str(error) for _record, error in self.context.reported]


@pytest.fixture
def start(server: RedisServer, key: str) -> Iterator[Callable[..., Running]]:
    made: list[Running] = []

    def start(command: str, at: str = key, **more: str) -> Running:
        made.append(Running(server, at, command, **more))
        return made[-1]

    yield start
    for each in made:
        each.task.stop()


Start = Callable[..., Running]


def record(offset: int, value: Any, key: Any = None, schema: Schema | None = None, partition: int = 0) -> SinkRecord:
    return SinkRecord("t", partition, offset, value, schema, key, None)


def row(offset: int, **fields: Any) -> SinkRecord:
    return record(offset, Struct(ROW, fields), key="k", schema=ROW)


def test_entries_have_the_fields_that_are_not_null(start: Start, client: Redis, key: str) -> None:
    start("XADD").put(row(0, name="a", price=1.5), record(1, {"n": 1, "ok": True, "d": Decimal("1.10"), "none": None}))
    found: Any = client.xrange(key)
    assert [fields for _id, fields in found] == [{"name": "a", "price": "1.5"}, {"n": "1", "ok": "true", "d": "1.10"}]


def test_a_newer_record_replaces_a_string_and_a_record_without_value_deletes_it(start: Start, client: Redis, key: str) -> None:
    sink = start("SET")
    sink.put(record(0, "a", key="x"), record(1, b"b", key=7), record(2, "c", key="x"))
    assert client.mget(f"{key}:x", f"{key}:7") == ["c", "b"]
    sink.put(record(3, None, key="x"), record(4, None, key="never"))
    assert client.mget(f"{key}:x", f"{key}:7") == [None, "b"]


def test_hashes_and_lists(start: Start, client: Redis, key: str) -> None:
    start("HSET", f"{key}-h", redis_separator="/").put(row(0, name="a", price=1.0), record(1, {"note": "n"}, key="k"))
    assert client.hgetall(f"{key}-h/k") == {"name": "a", "price": "1.0", "note": "n"}
    start("RPUSH", "${topic}." + key).put(record(0, "a"), record(1, "b"))
    assert client.lrange(f"t.{key}", 0, -1) == ["a", "b"]


@pytest.mark.parametrize(
    ("command", "bad", "why"),
    [
        ("SET", record(1, "a"), "needs a key"),
        ("HSET", record(1, "a", key="k"), "has no fields"),
        ("HSET", record(1, {"a": None}, key="k"), "no fields with a value"),
        ("XADD", record(1, None), "needs a value"),
        ("XADD", record(1, {"a": [1]}), "no text, bytes or number"),
        ("RPUSH", record(1, {"a": 1}), "no text, bytes or number"),
        ("SET", record(1, "a", key={"a": 1}), "no text, bytes or number"),
        ("SET", record(1, "\ud800", key="k"), "cannot be written"),
        ("HSET", record(1, {"\ud800": 1}, key="k"), "cannot be written"),
        ("RPUSH", record(1, Decimal("NaN")), "cannot be written"),
    ],
)
def test_records_that_cannot_be_written_are_reported(start: Start, command: str, bad: SinkRecord, why: str) -> None:
    sink = start(command)
    sink.put(bad)
    (reason,) = sink.reasons
    assert why in reason


@pytest.mark.parametrize(("command", "value"), [("XADD", {"n": 1}), ("RPUSH", "a"), ("HSET", {"n": 1})])
def test_a_key_of_another_type_refuses_its_records_only(start: Start, client: Redis, key: str, command: str, value: Any) -> None:
    sink = start(command, key + "${partition}")
    spoilt = f"{key}1" + (":k" if command == "HSET" else "")
    client.set(spoilt, "text")
    sink.put(record(0, value, key="k"), record(0, value, key="k", partition=1), record(1, value, key="k"))
    (reason,) = sink.reasons
    assert reason.startswith("The record t-1 at offset 0 was refused: WRONGTYPE")
    assert client.type(f"{key}0" + (":k" if command == "HSET" else "")) != "none"


def test_ids_of_offsets_write_records_that_come_again_once(
    start: Start, client: Redis, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    sink = start("XADD", key + "-${topic}-${partition}", redis_stream_ids="offset", redis_stream_maxlen="1000")
    first = [record(offset, {"n": offset}) for offset in range(5)]
    sink.put(*first)
    start("XADD", key + "-${topic}-${partition}", redis_stream_ids="offset").put(*first, record(7, {"n": 7}))
    found: Any = client.xrange(f"{key}-t-0")
    assert [id_ for id_, _fields in found] == ["1-0", "2-0", "3-0", "4-0", "5-0", "8-0"]
    client.xtrim(f"{key}-t-0", maxlen=1, approximate=False)
    sink.put(*first)  # they were written, and are trimmed
    assert sink.reasons == []
    assert sink.task.metrics()["entries-passed-over"] == 5
    assert caplog.text.count("it is taken for one that was written before") == 1


def test_ids_of_offsets_are_those_of_the_records_that_were_read(start: Start, client: Redis, key: str) -> None:
    sink = start("XADD", key + "-${topic}-${partition}", redis_stream_ids="offset")
    made = [
        each.new_record(topic="all")
        for each in (record(0, {"n": "a"}), record(0, {"n": "b"}), record(0, {"n": "b"}, partition=1))
    ]
    twice = [made[0], made[0].new_record(value={"n": "a2"}), *made[2:]]
    sink.put(*twice)
    sink.put(*twice)
    streams: Any = client.keys("*")
    assert sorted(each for each in streams if key in each) == [f"{key}-t-0", f"{key}-t-1"]
    found: list[Any] = [client.xrange(f"{key}-t-{partition}") for partition in range(2)]
    assert [[id_ for id_, _fields in each] for each in found] == [["1-0", "1-1"], ["1-0"]]
    assert sink.reasons == []


def test_a_topic_that_is_created_again_is_not_taken_for_its_old_records(start: Start, key: str) -> None:
    start("XADD", key + "-${topic}-${partition}", redis_stream_ids="offset").put(
        *(record(offset, {"old": offset}) for offset in range(5))
    )
    sink = start("XADD", key + "-${topic}-${partition}", redis_stream_ids="offset")
    sink.put(record(0, {"new": 0}))
    (reason,) = sink.reasons
    assert "Was the topic created again" in reason


@pytest.mark.parametrize(
    ("config", "key"),
    [
        ({"redis.stream.ids": "offset"}, "redis.key"),
        ({"redis.stream.ids": "offset", "redis.key": "a-${partition}"}, "redis.key"),
        ({"redis.uri": "rediss://r", "redis.key.file": "/key.pem"}, "redis.key.cert"),
        ({"redis.uri": "REDIS://redis"}, "redis.uri"),
        ({"redis.uri": "redis://redis/²"}, "redis.uri"),
        ({"redis.uri": "redis://redis:0"}, "redis.uri"),
        ({"redis.command": "SET", "redis.stream.maxlen": "5"}, "redis.stream.maxlen"),
        ({"redis.command": "SET", "redis.key": "${topic}${partition}", "redis.stream.ids": "offset"}, "redis.stream.ids"),
        ({"redis.uri": "http://redis"}, "redis.uri"),
        ({"redis.uri": "redis://user:hush@redis"}, "redis.uri"),
        ({"redis.uri": "redis://redis/zero"}, "redis.uri"),
        ({"redis.uri": "redis://redis:99999"}, "redis.uri"),
    ],
)
def test_keys_that_conflict_are_refused_by_name(config: dict[str, str], key: str) -> None:
    found = RedisSinkConnector.check(config)
    assert {name for name, each in found.items() if each.errors} == {key}
    assert "hush" not in str(found[key].errors)
    with pytest.raises(ConfigError):
        RedisSinkConnector().start(config)


@pytest.mark.parametrize("command", ["XADD", "SET", "RPUSH", "HSET"])
def test_a_server_that_is_full_is_waited_for_and_keeps_the_order(start: Start, client: Redis, key: str, command: str) -> None:
    sink = start(command, batch_size="50")
    fields = command in ("XADD", "HSET")
    records = [record(offset, {"n": offset} if fields else str(offset), key="k") for offset in range(200)]
    client.config_set("maxmemory", 1)
    with pytest.raises(RetriableError, match=r"used memory|OOM"):
        sink.task.put(records)
    assert not client.exists(key, f"{key}:k")
    client.config_set("maxmemory", 0)
    sink.put(*records)
    if command == "XADD":
        found: Any = client.xrange(key)
        assert [int(each["n"]) for _id, each in found] == list(range(200))
    elif command == "RPUSH":
        assert client.lrange(key, 0, -1) == [str(number) for number in range(200)]
    else:
        assert (client.hget(f"{key}:k", "n") if fields else client.get(f"{key}:k")) == "199"
    assert sink.task.metrics()["sink-throttled-ms"] > 0


@pytest.mark.parametrize("command", ["XADD", "SET", "RPUSH", "HSET"])
def test_a_primary_without_its_replicas_is_waited_for_and_told_without_data(start: Start, client: Redis, command: str) -> None:
    sink = start(command)
    client.config_set("min-replicas-to-write", 1)
    try:
        with pytest.raises(RetriableError, match="NOREPLICAS") as error:
            sink.task.put([record(0, {"card": "4111"} if command in ("XADD", "HSET") else "4111", key="k")])
    finally:
        client.config_set("min-replicas-to-write", 0)
    assert "4111" not in str(error.value)


@pytest.mark.parametrize("command", ["XADD", "RPUSH"])
def test_a_server_that_becomes_full_in_the_middle_has_all_or_nothing_of_a_pipeline(
    start: Start, client: Redis, key: str, command: str
) -> None:
    sink, text = start(command), "x" * 20_000
    about: Any = client.info("memory")
    client.config_set("maxmemory", about["used_memory"] + 400_000)
    with pytest.raises(RetriableError, match=r"used memory|OOM"):
        sink.task.put([record(offset, {"n": text} if command == "XADD" else text) for offset in range(100)])
    assert not client.exists(key)


def test_a_refused_login_fails_the_task_and_shows_no_password(start: Start) -> None:
    sink = start("SET", redis_password="hush")
    with pytest.raises(ConnectError, match=r"refused the login.*redis.password") as error:
        sink.task.put([record(0, "a", key="k")])
    assert not isinstance(error.value, RetriableError)
    assert "hush" not in str(error.value)


def test_a_server_that_is_killed_under_load_has_every_record(kafka: Kafka, topic: str) -> None:
    with closing(RedisServer()) as own:
        own.start()
        strings = dict.fromkeys(("key.converter", "value.converter"), "StringConverter")
        config = {"name": topic, "connector.class": "RedisSink", "topics": topic, "redis.uri": own.url, "redis.command": "SET"}
        with RunningTask({**config, **strings}, kafka.worker()) as task:
            for number in range(50):
                kafka.produce(topic, str(number), key=f"a{number}")
            eventually(lambda: keys(own) == 50)
            own.end(signal.SIGKILL)  # it keeps nothing on a disk
            for number in range(50):
                kafka.produce(topic, str(number), key=f"b{number}")
            eventually(lambda: "Redis" in (task.reports.trace or ""), what="the reason in the status")
            own.start()
            eventually(lambda: keys(own) == 50, what="the records that came meanwhile")


def keys(server: RedisServer) -> int:
    with closing(Redis.from_url(server.url)) as client:
        return int(str(client.dbsize()))


class TestContract(SinkConnectorContract):
    connector_class = RedisSinkConnector

    @pytest.fixture
    def config(self, server: RedisServer, key: str) -> dict[str, str]:
        return {"redis.uri": server.url, "redis.command": "RPUSH", "redis.key": key}
