"""Divides named things among tasks that find them by themselves. Runs on executors."""

from __future__ import annotations

import hashlib


def is_of_task(name: str, task: int, tasks: int) -> bool:
    """Return whether something with this name belongs to a task: to the one with the highest hash for it.

    Another number of tasks moves only what belongs to tasks that are new or gone (rendezvous hashing, Thaler and Ravishankar,
    1996).
    """
    return max(range(tasks), key=lambda each: hashlib.blake2b(f"{each}:{name}".encode(), digest_size=8).digest()) == task
