"""Returns memory that librdkafka's clients have freed to the operating system.

By default the C library keeps an arena for every few threads, each of which stays as large as it once was. Runs in any process.
"""

from __future__ import annotations

import ctypes

_M_ARENA_MAX = -8
_ARENAS = 2


def limit_arenas() -> None:
    """Let all threads share two arenas, so that freed memory can be returned. Call it before threads start. Only with glibc."""
    _libc("mallopt", _M_ARENA_MAX, _ARENAS)


def release_free_memory() -> None:
    """Return what is free to the operating system. Takes some milliseconds. Only with glibc."""
    _libc("malloc_trim", 0)


def _libc(function: str, *arguments: int) -> None:
    try:
        call = getattr(ctypes.CDLL(None), function)
    except (AttributeError, OSError):  # another C library, or none
        return
    call(*arguments)
