"""Reduces how often Python's cyclic garbage collector runs."""

from __future__ import annotations

import gc

_YOUNG_OBJECTS = 50_000


def raise_gc_threshold() -> None:
    """Run the garbage collector every 50,000 new objects instead of every 700, in the whole process.

    Records hold no reference cycles and are freed by reference counting. Scanning them costs a fifth of the throughput.
    A higher threshold, or a collector that is turned off (0), stays as it is.
    """
    young, *older = gc.get_threshold()
    if 0 < young < _YOUNG_OBJECTS:
        gc.set_threshold(_YOUNG_OBJECTS, *older)
