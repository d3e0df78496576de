"""Limits the files that this process and its children may open, by Linux's Landlock (kernel 5.13 and newer).

See https://docs.kernel.org/userspace-api/landlock.html. The limit cannot be lifted again, and holds for native code too.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from sluiceway.errors import ConnectError

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # system calls, the same on each architecture
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVILEGES = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_FIRST = (1 << 13) - 1  # the rights of the first version
_REFER, _TRUNCATE = 1 << 13, 1 << 14  # of the second and the third
_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled_access_fs", ctypes.c_uint64),)


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed_access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32))


def available() -> bool:
    """Return whether this kernel can limit a process."""
    return _version() >= 1


def restrict(readable: Iterable[Path], writable: Iterable[Path]) -> None:
    """Let this thread and what it starts open only these files and folders. Paths that do not exist are left out.

    Raises ConnectError if the kernel refuses it.
    """
    version = _version()
    handled = _FIRST | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    ruleset = _call(_CREATE_RULESET, ctypes.byref(_Ruleset(handled)), ctypes.c_size_t(ctypes.sizeof(_Ruleset)), 0)
    try:
        for paths, rights in ((readable, _READING), (writable, handled)):
            for path in paths:
                _allow(ruleset, path, rights)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            raise _refused()
        _call(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = rights if stat.S_ISDIR(os.fstat(opened).st_mode) else rights & _OF_FILES
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(_PathBeneath(allowed, opened)), 0)
    finally:
        os.close(opened)


def _version() -> int:
    if sys.platform != "linux":
        return 0
    version: int = ctypes.CDLL(None).syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(0, version)


def _call(number: int, *args: object) -> int:
    found: int = ctypes.CDLL(None, use_errno=True).syscall(number, *args)
    if found < 0:
        raise _refused()
    return found


def _refused() -> ConnectError:
    return ConnectError(f"Cannot limit the files of this process: {os.strerror(ctypes.get_errno())} (Landlock).")
