"""Storage that is full or read-only, by the limits of the operating system."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def full_disk(largest: int = 0) -> Iterator[None]:
    """Let every write of this process fail that makes a file larger than a number of bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def folder_of_nobody() -> Iterator[Path]:
    """Give a folder, and let this process be a user without rights if it is root, whom no mode stops."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o777)
    user = os.geteuid()
    if user == 0:
        os.seteuid(_NOBODY)
    try:
        yield folder
    finally:
        os.seteuid(user)
        shutil.rmtree(folder)


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Remove the rights to write to a folder and to all folders in it."""
    folders = [folder, *(each for each in folder.rglob("*") if each.is_dir())]
    owner = os.geteuid()
    os.seteuid(os.getuid())
    for each in folders:
        each.chmod(0o555)
    os.seteuid(owner)
    try:
        yield
    finally:
        os.seteuid(os.getuid())
        for each in folders:
            each.chmod(0o777)
        os.seteuid(owner)
