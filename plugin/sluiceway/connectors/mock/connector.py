"""The base class of MockSourceConnector and MockSinkConnector. Runs on the driver."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from sluiceway.api import Connector
from sluiceway.connectors.mock import config as keys
from sluiceway.connectors.mock.failures import Failures
from sluiceway.connectors.verifiable.config import ID, whole
from sluiceway.errors import ConnectError


class MockConnector(Connector):
    """Fails as configured. Runs ``tasks.max`` tasks, where Kafka's mock connectors run one."""

    _timer: threading.Timer | None = None

    def start(self, config: Mapping[str, str]) -> None:
        values = self.config_def().parse(config)
        self._config = dict(config)
        self._failures = Failures(values, None)
        self._failures.at(keys.CONNECTOR_START)
        if values[keys.MOCK_MODE] == keys.CONNECTOR_FAILURE:
            self._timer = threading.Timer(whole(values, keys.DELAY_MS) / 1000, self._fail)
            self._timer.daemon = True
            self._timer.start()

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        return [{**self._config, ID: str(task)} for task in range(max_tasks)]

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._failures.at(keys.CONNECTOR_STOP)

    def _fail(self) -> None:
        self.context.raise_error(ConnectError(f"Mock connector failure, as {keys.MOCK_MODE}={keys.CONNECTOR_FAILURE} asks for."))
