"""What is done with a topic that has just been created: brokers know it first, and its leaders later."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from sluiceway.config.worker import WorkerConfig
from sluiceway.kafka.admin import InternalTopic, ensure_internal_topic
from sluiceway.storage import history_topic
from sluiceway.storage.history_topic import HistoryTopic

_UNKNOWN = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
_NEXT = {"created": "known", "known": "electing", "electing": "ready"}


def _done(result: Any = None, error: KafkaError | None = None) -> Future[Any]:
    future: Future[Any] = Future()
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(KafkaException(error))
    return future


class YoungTopic:
    """An admin client of a cluster with one topic, of which the broker knows more with each description."""

    def __init__(self, state: str) -> None:
        self._state = state

    @property
    def _exists(self) -> bool:
        return self._state != "missing"

    def create_topics(self, topics: list[Any], **_: Any) -> Mapping[str, Future[Any]]:
        taken = KafkaError(KafkaError.TOPIC_ALREADY_EXISTS) if self._exists else None
        self._state = "created" if taken is None else self._state
        return {topic.topic: _done(error=taken) for topic in topics}

    def describe_topics(self, _topics: Any, **_: Any) -> Mapping[str, Future[Any]]:
        state, self._state = self._state, _NEXT.get(self._state, self._state)
        description = SimpleNamespace(partitions=[SimpleNamespace(leader=1 if state == "ready" else None)])
        return {"t": _done(description, _UNKNOWN if state in ("missing", "created") else None)}

    def describe_configs(self, resources: list[Any], **_: Any) -> Mapping[Any, Future[Any]]:
        return {each: _done({"cleanup.policy": SimpleNamespace(value="compact")}) for each in resources}

    def assert_has_a_leader(self) -> None:
        assert self._state == "ready"


Use = Callable[[YoungTopic], None]


def _opened_as_internal(admin: YoungTopic) -> None:
    assert ensure_internal_topic(admin, InternalTopic("t", "offset.storage", "offsets", 1, 1)) == 1  # type: ignore[arg-type]


def _read_as_history(admin: YoungTopic) -> None:
    history = HistoryTopic(WorkerConfig.of({"sluiceway.history.topic": "t"}))
    history._admin = admin  # type: ignore[assignment]
    assert history._usable(newest=False)


@pytest.fixture(autouse=True)
def offsets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets of a partition without a leader are refused, and the history is empty."""

    def end_offsets(admin: YoungTopic, partitions: list[Any], **_: Any) -> Mapping[Any, int]:
        admin.assert_has_a_leader()
        return dict.fromkeys(partitions, 0)

    monkeypatch.setattr(history_topic, "end_offsets", end_offsets)
    monkeypatch.setattr(time, "sleep", lambda _: None)


@pytest.mark.parametrize("state", ["missing", "created", "known"])
@pytest.mark.parametrize("use", [_opened_as_internal, _read_as_history])
def test_a_topic_that_was_just_created_is_used_once_it_has_a_leader(use: Use, state: str) -> None:
    admin = YoungTopic(state)
    use(admin)
    admin.assert_has_a_leader()
