"""Filter: drops records, with a predicate those that it is true for."""

from __future__ import annotations

from collections.abc import Sequence

from sluiceway.api import Transform
from sluiceway.api.transform import R


class Filter(Transform):
    """Lets no record through, or with a predicate none that it holds for."""

    java_class = "org.apache.kafka.connect.transforms.Filter"

    def apply(self, record: R) -> R | Sequence[R] | None:
        return None
