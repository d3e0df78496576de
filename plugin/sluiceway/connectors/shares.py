"""Divides named things among tasks. No I/O."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def is_of_task(name: str, task: int, tasks: int) -> bool:
    """Return whether something with this name, which each task finds by itself, belongs to a task: the one with the highest hash.

    Another number of tasks moves only what belongs to tasks that are new or gone (rendezvous hashing, Thaler and Ravishankar,
    1996).
    """
    return max(range(tasks), key=lambda each: hashlib.blake2b(f"{each}:{name}".encode(), digest_size=8).digest()) == task


def dealt(names: Sequence[str], most: int) -> list[Sequence[str]]:
    """Return the names in at most ``most`` groups, one after the other to each. No group is empty."""
    count = min(most, len(names))
    return [names[number::count] for number in range(count)]
