"""Restart requests on the config topic, and what a Kafka Connect worker makes of ours."""

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
def test_a_request_for_one_task_comes_back_as_it_was(name: str, task: int) -> None:
    request = RestartRequest(name, task=task)
    assert decode_config_record(*encode_restart(request)) == request


def test_to_a_connect_worker_a_request_for_one_task_is_about_a_connector_that_cannot_be() -> None:
    key, _ = encode_restart(RestartRequest("a", task=3))
    assert key.startswith(PREFIX)
    with pytest.raises(ConfigError, match="control"):
        NonEmptyStringWithoutControlChars()("name", key.removeprefix(PREFIX).decode())


def test_a_plain_restart_is_the_record_that_connect_itself_would_read() -> None:
    assert encode_restart(RestartRequest("a")) == (PREFIX + b"a", b'{"include-tasks":false,"only-failed":false}')


def test_a_request_for_one_task_reaches_whoever_runs_the_connector() -> None:
    store = MemoryConfigBackingStore()
    heard: list[tuple[str, str]] = []
    store.on_change(lambda kind, connector: heard.append((kind, connector)))
    store.put_restart_request(RestartRequest("a", task=1))
    assert heard == [("restart", "a")]
    assert store.take_restart_requests() == [RestartRequest("a", task=1)]
    assert store.snapshot().connectors == {}
