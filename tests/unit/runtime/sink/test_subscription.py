from __future__ import annotations

import math
from typing import cast

import pytest

from sluiceway.errors import ConfigError, KafkaClientError
from sluiceway.runtime.sink.subscription import Subscription
from sluiceway.runtime.sink.task_consumer import RebalanceListener, TaskConsumer


class Topics:
    """A consumer that only lists topics."""

    def topics(self) -> list[str]:
        return ["orders", "b2", "a", "\u00e4", "__consumer_offsets"]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        (r"\p{Lower}+", ["a", "orders"]),
        (r"[a-z&&[^a]]\d", ["b2"]),
        (r"\w", ["a"]),  # Java's means ASCII
        (r"\Qorders\E", ["orders"]),
        ("order", []),
        (".*", ["a", "b2", "orders", "\u00e4"]),
    ],
)
def test_topics_regex_has_javas_syntax(pattern: str, matched: list[str]) -> None:
    assert Subscription({"topics.regex": pattern}).find_topics(cast(TaskConsumer, Topics())) == matched


def test_missing_topics_are_shown_until_all_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str | None] = []

    def waiting(reason: object = None, _seconds: float = 0) -> None:
        shown.append(None if reason is None else str(reason))

    class Growing(Topics):
        names: tuple[str, ...] = ()

        def topics(self) -> list[str]:
            return list(self.names)

    consumer = Growing()
    subscription = Subscription({"topics": "ordrs,other"}, waiting)
    for names in (("orders",), ("orders", "other"), ("orders", "other", "ordrs")):
        monkeypatch.setattr(consumer, "names", names)
        monkeypatch.setattr(subscription, "_next_refresh", 0.0)
        subscription.refresh_if_due(cast(TaskConsumer, consumer), cast(RebalanceListener, None))
    assert subscription._next_refresh == math.inf
    assert shown == [
        "Topics ordrs, other do not exist. Did you mean orders?",
        "Topic ordrs does not exist. Did you mean orders?",
        None,
    ]


def test_missing_topics_are_shown_at_the_end_of_a_bounded_task_unless_all_existed_before() -> None:
    shown: list[object] = []
    for names in ("ordrs", "orders"):
        subscription = Subscription({"topics": names}, lambda *reason: shown.append(reason[0] if reason else None))
        for _ in range(2):
            assert subscription.lacks_topics(cast(TaskConsumer, Topics())) == (names == "ordrs")
    missing = "Topic ordrs does not exist. Did you mean orders?"
    assert shown == [missing, missing, None]


def test_topics_that_cannot_be_listed_do_not_end_the_task() -> None:
    class Refusing(Topics):
        def topics(self) -> list[str]:
            raise KafkaClientError("no", "_TIMED_OUT")

    shown: list[object] = []
    subscription = Subscription({"topics": "a"}, lambda *reason: shown.extend(reason))
    subscription.refresh_if_due(cast(TaskConsumer, Refusing()), cast(RebalanceListener, None))
    assert shown == []


def test_a_pattern_without_topics_is_shown() -> None:
    shown: list[object] = []
    Subscription({"topics.regex": "order"}, lambda *reason: shown.extend(reason[:1])).find_topics(cast(TaskConsumer, Topics()))
    assert shown == ["No topic matches topics.regex=order."]


def test_a_pattern_that_java_rejects_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"^Invalid value a\(b for configuration topics\.regex: Invalid regex: Unclosed group"):
        Subscription({"topics.regex": "a(b"})
