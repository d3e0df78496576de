"""Ids of entries, and the keys of the sources, without a server."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluiceway.connectors.redis import RedisGroupSourceConnector, RedisStreamSourceConnector
from sluiceway.connectors.redis.connection import server_of
from sluiceway.connectors.redis.group_source import CONFIG as GROUP
from sluiceway.connectors.redis.group_source import options_of
from sluiceway.connectors.redis.streams import Entry

NUMBERS = st.integers(0, 2**64 - 1)


@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_ids_are_ordered_by_time_then_number(first: int, second: int, third: int, fourth: int) -> None:
    one, two = Entry.parse(f"{first}-{second}"), Entry.parse(f"{third}-{fourth}")
    assert (one < two) == ((first, second) < (third, fourth))
    assert Entry.parse(str(one)) == one


def test_an_id_may_leave_out_its_number() -> None:
    assert Entry.parse("5") == Entry((5, 0))


@pytest.mark.parametrize("id_", ["", "-", "5-", "a-1", "1-a", "$", ">", "-1-0", f"{2**64}-0", f"1-{2**64}", "1-2-3", "٣-0 "])
def test_what_is_no_id_is_refused(id_: str) -> None:
    with pytest.raises(ValueError, match="is no id of an entry"):
        Entry.parse(id_)


@pytest.mark.parametrize(
    ("config", "key", "message"),
    [
        ({"redis.stream.name": ""}, "redis.stream.name", "must not be empty"),
        ({"redis.stream.name": "a,a"}, "redis.stream.name", "duplicated"),
        ({"redis.stream.name": "a", "redis.stream.offset": "now"}, "redis.stream.offset", "nor $ for the end"),
        ({"redis.stream.name": "a", "redis.stream.values": "text"}, "redis.stream.values", "must be one of"),
        ({"redis.stream.name": "a", "batch.size": "0"}, "batch.size", "at least 1"),
        ({"redis.stream.name": "orders:eu"}, "topic", "cannot have the name of stream orders:eu"),
    ],
)
@pytest.mark.parametrize("kind", [RedisStreamSourceConnector, RedisGroupSourceConnector])
def test_keys_are_checked_by_name(
    kind: type[RedisStreamSourceConnector | RedisGroupSourceConnector], config: dict[str, str], key: str, message: str
) -> None:
    found = kind.check(config)
    assert {name for name, each in found.items() if each.errors} == {key}
    assert message in found[key].errors[0]


def test_several_tasks_need_several_names_in_the_group() -> None:
    config = {"redis.stream.name": "a", "redis.stream.consumer.name": "w"}
    assert not any(each.errors for each in RedisGroupSourceConnector.check({**config, "tasks.max": "1"}).values())
    found = RedisGroupSourceConnector.check({**config, "tasks.max": "2"})
    assert "${task}" in found["redis.stream.consumer.name"].errors[0]


def test_each_task_has_a_name_of_its_own_in_the_group() -> None:
    connector = RedisGroupSourceConnector()
    connector.start({"redis.stream.name": "a"})
    assert [options_of(each).consumer for each in connector.task_configs(2)] == ["consumer-0", "consumer-1"]
    position = connector.position_elsewhere({"redis.stream.name": "a,b", "redis.stream.consumer.group": "g"})
    assert "consumer group g" in position
    assert "XGROUP SETID" in position


@pytest.mark.parametrize("insecure", ["true", "false"])
def test_tls_is_that_of_the_uri(insecure: str) -> None:
    keys = {"redis.stream.name": "a", "redis.cacert": "/ca.pem", "redis.insecure": insecure, "redis.password": "hush"}
    plain, tls = (server_of(GROUP.parse({**keys, "redis.uri": uri})) for uri in ("redis://r:1/2", "rediss://r:1/2"))
    assert plain.tls == {}
    assert (tls.tls["ssl_ca_certs"], "ssl_cert_reqs" in tls.tls) == ("/ca.pem", insecure == "true")
    assert "hush" not in repr(tls)
