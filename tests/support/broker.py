"""Embedded brokers that last for a pytest run, one per xdist worker, so that workers may use the same names.

The run's controlling process owns them: it creates their folder before any worker starts, and stops them when the session ends,
even if it is killed.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sluiceway.stack.broker import EmbeddedBroker
from support.eventually import LIMIT
from support.guard import Guard

READY_SECONDS = LIMIT

#: The environment variable with the run's folder, inherited by xdist workers. Each broker has a folder in it.
FOLDER_VARIABLE = "SLUICEWAY_TEST_BROKER_DIR"

_JAVA_OPTIONS = "JDK_JAVA_OPTIONS"  # read by Java's launcher


class SharedBrokers:
    """The folder of the run's brokers, in the controlling process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sluiceway-tests-"))
        os.environ[FOLDER_VARIABLE] = str(self.folder)
        self._guard = Guard(stop_all, self.folder)

    def close(self) -> None:
        """Stop the brokers that tests have started, and delete their files."""
        os.environ.pop(FOLDER_VARIABLE, None)
        stop_all(self.folder)
        self._guard.close()


def stop_all(folder: str | Path) -> None:
    """Stop the brokers of a run and delete the run's folder."""
    for each in Path(folder).glob("*"):
        EmbeddedBroker(each).stop()
    shutil.rmtree(folder, ignore_errors=True)


def shared_bootstrap() -> str:
    """Return the address of this worker's broker; the first call starts it."""
    folder = Path(os.environ[FOLDER_VARIABLE], os.environ.get("PYTEST_XDIST_WORKER", "main"))
    with short_lived():
        return EmbeddedBroker(folder).start(progress=lambda line: print(line, file=sys.stderr), timeout=READY_SECONDS)


@contextlib.contextmanager
def short_lived() -> Iterator[None]:
    """Start Java processes without the optimizing compiler, which a broker of some minutes does not repay."""
    before = os.environ.get(_JAVA_OPTIONS)
    os.environ[_JAVA_OPTIONS] = "-XX:TieredStopAtLevel=1"
    try:
        yield
    finally:
        os.environ.pop(_JAVA_OPTIONS)
        if before is not None:
            os.environ[_JAVA_OPTIONS] = before
