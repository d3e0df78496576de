"""The producer that a task's error handling makes for its dead letter queue."""

from __future__ import annotations

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.runtime.errors import error_handling
from sluiceway.runtime.task import TaskSpec
from unit.runtime.error_handling import ALL, DEAD_LETTER_QUEUE, TASK
from unit.runtime.fake_clients import FakeProducer


@pytest.mark.parametrize("worker", [{}, {"producer.transactional.id": "worker"}], ids=str)
@pytest.mark.parametrize("own", [{}, {"producer.override.transactional.id": "orders"}], ids=str)
def test_the_dead_letter_queues_producer_has_the_connectors_settings_but_no_transactions(
    producers: list[FakeProducer], monkeypatch: pytest.MonkeyPatch, worker: dict[str, str], own: dict[str, str]
) -> None:
    monkeypatch.setattr(error_handling, "ensure_dead_letter_topic", lambda *_: None)
    own = {**own, "producer.override.linger.ms": "7"}
    spec = TaskSpec(TASK, {**ALL, **DEAD_LETTER_QUEUE, **own}, WorkerConfig.of(worker), "h:1", 1, sink=True)
    error_handling.retry_with_tolerance_operator(spec, lambda _seconds: None)
    (made,) = producers
    assert "transactional.id" not in made.config
    assert made.config["linger.ms"] == "7"
    assert made.config["client.id"] == "connector-dlq-producer-orders-3"
