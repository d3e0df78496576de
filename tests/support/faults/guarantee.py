"""Delivery guarantees of sources, and their checks."""

from __future__ import annotations

import enum

from sluiceway.connectors.verifiable.checker import Verdict

_SUPPORT = "exactly.once.source.support"


class Guarantee(enum.Enum):
    """A delivery guarantee. Test ids contain the name, the table the value."""

    AT_LEAST_ONCE = "0 lost, at most one batch repeated"
    EXACTLY_ONCE = "0 lost, 0 duplicated"

    @property
    def worker(self) -> dict[str, str]:
        """The worker's properties for the guarantee."""
        return {_SUPPORT: "enabled"} if self is Guarantee.EXACTLY_ONCE else {}

    def check(self, verdict: Verdict, *, faults: int, batch: int) -> None:
        """Fail if the verdict violates the guarantee; ``batch`` is the maximum of records that one fault may repeat."""
        assert verdict.total > 0, verdict
        assert verdict.lost == 0, verdict
        assert verdict.reordered == 0, verdict
        allowed = faults * batch if self is Guarantee.AT_LEAST_ONCE else 0
        assert verdict.duplicated <= allowed, verdict
        assert verdict.largest_repeat <= batch, verdict
