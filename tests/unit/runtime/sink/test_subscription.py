from __future__ import annotations

from typing import cast

import pytest

from sluiceway.errors import ConfigError
from sluiceway.runtime.sink.subscription import Subscription
from sluiceway.runtime.sink.task_consumer import TaskConsumer


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


def test_a_pattern_that_java_rejects_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"^Invalid value a\(b for configuration topics\.regex: Invalid regex: Unclosed group"):
        Subscription({"topics.regex": "a(b"})
