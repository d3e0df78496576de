"""Makes the threads of a process import a package before its parts, in processes that run connectors on threads.

Python locks each module by itself. It loads ``a.b`` although another thread is only half done with ``a``, and locks ``a.b``
before it loads ``a``. So where ``a`` imports its own parts, one thread may see a half-imported module, and get an ImportError, or
two wait for each other, and one gets a _DeadlockError. Tasks import what they need when they start, and those of one process
start at the same time.
"""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_FIND_AND_LOAD = "_find_and_load"  # called for what is not in sys.modules, so that other imports cost nothing more


def import_packages_first() -> None:
    """Let each import in this process wait until other threads have imported its package. May be called again.

    It waits by the locks of Python's own import system, which find out when two threads would wait for each other.
    """
    bootstrap: Any = importlib._bootstrap
    original = getattr(bootstrap, _FIND_AND_LOAD, None)
    if original is None or hasattr(original, "__wrapped__") or not hasattr(bootstrap, "_lock_unlock_module"):
        return

    @functools.wraps(original)
    def find_and_load(name: str, import_: Callable[..., ModuleType]) -> ModuleType:
        package = name.rpartition(".")[0]
        if package and package not in sys.modules:
            find_and_load(package, import_)
        elif package and getattr(getattr(sys.modules[package], "__spec__", None), "_initializing", False):
            bootstrap._lock_unlock_module(package)
        return original(name, import_)  # type: ignore[no-any-return]

    setattr(bootstrap, _FIND_AND_LOAD, find_and_load)
