from __future__ import annotations

from typing import Any

from sluiceway.api import SinkRecord
from sluiceway.transforms.predicates.topic_name_matches import TopicNameMatches


def record(value: Any = 1, topic: str = "orders", **more: Any) -> SinkRecord:
    return SinkRecord(topic, 0, 0, value, **more)


def test_a_topic_matches_with_its_whole_name() -> None:
    predicate = TopicNameMatches()
    predicate.configure({"pattern": "ord.*r"})
    assert [predicate.test(record(topic=topic)) for topic in ("order", "orders", "order", "xorder")] == [True, False, True, False]
