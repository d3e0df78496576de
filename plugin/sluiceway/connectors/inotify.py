"""Reads inotify, by which Linux announces changes of files. No other system has it."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

log = logging.getLogger(__name__)

T = TypeVar("T")

MODIFY, ATTRIB, MOVED_FROM, MOVED_TO, CREATE, DELETE, DELETE_SELF, MOVE_SELF = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200, 0x400, 0x800
MASK_ADD, ONE_SHOT = 0x2000_0000, 0x8000_0000
IGNORED = 0x8000
"""The kernel has removed the watch."""

_CLOSE_ON_EXEC = 0o2000000
_EVENT = struct.Struct("iIII")  # watch, mask, cookie, length of the name that follows
_BUFFER = 1 << 16


class Event(NamedTuple):
    """A change. ``watch`` is negative if events were lost; ``name`` is that of the file in a watched folder."""

    watch: int
    mask: int
    name: str


class Inotify:
    """An inotify instance, of which a user may have 128. Raises OSError, and AttributeError with a C library that has none."""

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise OSError("inotify is Linux's")
        libc = ctypes.CDLL(None, use_errno=True)
        self._add, self._remove = libc.inotify_add_watch, libc.inotify_rm_watch
        self._add.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
        self._remove.argtypes = (ctypes.c_int, ctypes.c_int)
        self._descriptor: int = libc.inotify_init1(_CLOSE_ON_EXEC)
        if self._descriptor < 0:
            raise _os_error("inotify_init1")

    def add(self, path: Path, events: int) -> int:
        """Watch a file or folder, and return the watch's number, which is the same for the same path. Raises OSError."""
        number: int = self._add(self._descriptor, os.fsencode(path), events)
        if number < 0:
            raise _os_error(str(path))
        return number

    def remove(self, number: int) -> None:
        self._remove(self._descriptor, number)

    def read(self) -> list[Event]:
        """Wait for events, and return them."""
        data, position, found = os.read(self._descriptor, _BUFFER), 0, []
        while position < len(data):
            watch, mask, _, length = _EVENT.unpack_from(data, position)
            position += _EVENT.size
            found.append(Event(watch, mask, os.fsdecode(data[position : position + length].rstrip(b"\0"))))
            position += length
        return found


class PerProcess(Generic[T]):
    """An object of a process that all its tasks share, made at its first use. A forked process makes its own."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._after_fork()
        with contextlib.suppress(AttributeError):  # systems that cannot fork
            os.register_at_fork(after_in_child=self._after_fork)

    def get(self) -> T | None:
        """Return the object, None if it cannot be made."""
        with self._lock:
            if not self._made:
                self._made.append(None)
                try:
                    self._made[0] = self._make()
                except (OSError, AttributeError) as error:  # as many instances as a user may have; a C library without inotify
                    log.info("Files are read every now and then to find changes, because inotify is not available: %s", error)
            return self._made[0]

    def _after_fork(self) -> None:
        """Forget the parent's object, whose thread the child does not have."""
        self._lock = threading.Lock()
        self._made: list[T | None] = []


def _os_error(what: str) -> OSError:
    code = ctypes.get_errno()
    return OSError(code, os.strerror(code), what)
