"""How a task of PostgreSQL shows that it waits for the server."""

from __future__ import annotations

from unittest.mock import Mock, patch

import pytest

from sluiceway.connectors.cdc.postgres.task import PostgresTask
from sluiceway.errors import RetriableError
from sluiceway.testing import MemorySourceContext
from unit.connectors.cdc.test_option_checks import POSTGRESQL


def test_a_failed_poll_raises_at_once_and_the_next_one_waits() -> None:
    """The runtime shows the error in the status until a poll succeeds."""
    context, task = MemorySourceContext(), PostgresTask()
    context.wait = Mock()  # type: ignore[method-assign]
    task.initialize(context)
    task.start({**POSTGRESQL, "retriable.restart.connector.wait.ms": "5000"})
    with patch("sluiceway.connectors.cdc.postgres.task.connect", side_effect=RetriableError("away")):
        for waits in (0, 1, 2):
            with pytest.raises(RetriableError, match="away"):
                task.poll()
            assert [call.args for call in context.wait.call_args_list] == [(5.0,)] * waits
    assert context.waits_for == []
