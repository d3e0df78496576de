"""A transform that stops a task in the middle of a batch, so that a source holds messages for sure."""

from __future__ import annotations

import threading
from typing import Any

from sluiceway.api import Transform
from support.eventually import LIMIT


class Gate(Transform):
    """Passes records on while the gate is open. ``reached`` is set when a record is before it."""

    opened = threading.Event()
    reached = threading.Event()

    def apply(self, record: Any) -> Any:
        Gate.reached.set()
        assert Gate.opened.wait(LIMIT), "the gate was not opened"
        return record


GATE = {"transforms": "gate", "transforms.gate.type": f"{__name__}.Gate"}


def shut() -> None:
    """Let the next record wait."""
    Gate.reached.clear()
    Gate.opened.clear()
