"""Restart requests on the config topic, and how Kafka Connect workers read them."""

from __future__ import annotations

import pytest

from sluiceway.config.validators import NonEmptyStringWithoutControlChars
from sluiceway.errors import ConfigError
from sluiceway.storage.codec import decode_config_record, encode_restart
from sluiceway.storage.memory import MemoryConfigBackingStore
from sluiceway.storage.model import RestartRequest

PREFIX = b"restart-connector-"


@pytest.mark.parametrize("name", ["a", "a-1", "ä b", "tasks/3"])
@pytest.mark.parametrize("task", [0, 17])
def test_a_restart_request_for_one_task_is_decoded_as_written(name: str, task: int) -> None:
    request = RestartRequest(name, task=task)
    assert decode_config_record(*encode_restart(request)) == request


def test_a_connect_worker_reads_a_request_for_one_task_as_an_impossible_connector() -> None:
    key, _ = encode_restart(RestartRequest("a", task=3))
    assert key.startswith(PREFIX)
    with pytest.raises(ConfigError, match="control"):
        NonEmptyStringWithoutControlChars()("name", key.removeprefix(PREFIX).decode())


def test_a_restart_of_a_connector_has_connects_bytes() -> None:
    assert encode_restart(RestartRequest("a")) == (PREFIX + b"a", b'{"include-tasks":false,"only-failed":false}')


def test_a_request_for_one_task_reaches_listeners_and_readers() -> None:
    store = MemoryConfigBackingStore()
    heard: list[tuple[str, str]] = []
    store.on_change(lambda kind, connector: heard.append((kind, connector)))
    store.put_restart_request(RestartRequest("a", task=1))
    assert heard == [("restart", "a")]
    assert store.take_restart_requests() == [RestartRequest("a", task=1)]
    assert store.snapshot().connectors == {}
