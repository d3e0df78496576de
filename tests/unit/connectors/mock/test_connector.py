from __future__ import annotations

import pytest

from sluiceway.connectors.mock.sink import MockSinkConnector
from sluiceway.connectors.mock.source import MockSourceConnector
from sluiceway.errors import ConnectError
from sluiceway.testing import MemoryConnectorContext
from support.eventually import LIMIT, eventually


def test_mock_mode_fails_the_connector_from_another_thread() -> None:
    context = MemoryConnectorContext()
    connector = MockSourceConnector()
    connector.initialize(context)
    connector.start({"mock_mode": "connector-failure", "delay_ms": "1"})
    eventually(lambda: bool(context.errors), what="the failure")
    connector.stop()
    assert isinstance(context.errors[0], ConnectError)


def test_a_stopped_connector_does_not_fail() -> None:
    connector = MockSinkConnector()
    connector.start({"mock_mode": "connector-failure", "delay_ms": "3600000"})
    timer = connector._timer
    assert timer is not None
    connector.stop()
    timer.join(LIMIT)
    assert not timer.is_alive()


def test_the_connector_itself_fails_at_start_and_stop() -> None:
    with pytest.raises(ConnectError, match="connector-start"):
        MockSinkConnector().start({"failure.in": "connector-start"})
    connector = MockSinkConnector()
    connector.start({"failure.in": "connector-stop"})
    with pytest.raises(ConnectError, match="connector-stop"):
        connector.stop()


def test_every_task_gets_its_id() -> None:
    connector = MockSourceConnector()
    connector.start({"topic": "t"})
    assert [config["id"] for config in connector.task_configs(2)] == ["0", "1"]
