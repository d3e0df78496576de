"""The lookup of the Kafka cluster's id."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sluiceway.config.worker import WorkerConfig
from sluiceway.errors import MissingToolError
from sluiceway.rest import cluster_id
from sluiceway.rest.cluster_id import ClusterId


def test_the_cluster_is_asked_until_it_answers_once(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: Iterator[Exception | str] = iter([MissingToolError("no broker"), "id"])

    def ask(_worker: WorkerConfig) -> str:
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(cluster_id, "_lookup", ask)
    lookup = ClusterId(WorkerConfig.of({}))
    assert [lookup(), lookup(), lookup()] == [None, "id", "id"]
