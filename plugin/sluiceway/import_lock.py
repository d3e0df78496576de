"""Lets one thread at a time import modules, in processes that run connectors on threads.

Python locks each module, not its package: a thread that imports part of a package may be given the rest while another thread is
half done with the package itself, and gets an ImportError, or the two wait for each other and one gets a _DeadlockError. Tasks
import what they need when they start, and those of one process start at the same time.
"""

from __future__ import annotations

import functools
import importlib
import logging
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

log = logging.getLogger(__name__)

_PATIENCE_SECONDS = 60.0
_FIND_AND_LOAD = "_find_and_load"  # called for what is not in sys.modules, so that other imports cost nothing more


def import_one_at_a_time() -> None:
    """Serialize the imports of this process from now on. May be called again.

    A module whose import waits for another thread's import would hang: after a minute without the lock, the import goes on.
    """
    bootstrap: Any = importlib._bootstrap
    original = getattr(bootstrap, _FIND_AND_LOAD, None)
    if original is not None and not hasattr(original, "__wrapped__"):
        setattr(bootstrap, _FIND_AND_LOAD, _serialized(original))


def _serialized(find_and_load: Callable[..., ModuleType]) -> Callable[..., ModuleType]:
    lock = threading.RLock()

    @functools.wraps(find_and_load)
    def wrapper(name: str, import_: Callable[..., ModuleType]) -> ModuleType:
        locked = lock.acquire(timeout=_PATIENCE_SECONDS)
        if not locked:
            log.warning("Importing %s beside another import that takes more than %g s", name, _PATIENCE_SECONDS)
        try:
            return find_and_load(name, import_)
        finally:
            if locked:
                lock.release()

    return wrapper
