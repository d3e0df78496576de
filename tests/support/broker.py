"""Embedded brokers that last for a pytest run, one per xdist worker, so that workers may use the same names.

The run's controlling process owns them: it creates their folder before any worker starts, and stops them when the session ends,
even if it is killed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from sluiceway.stack.broker import JVM_OPTIONS, EmbeddedBroker
from support.eventually import LIMIT
from support.guard import Guard

READY_SECONDS = LIMIT

#: The environment variable with the run's folder, inherited by xdist workers. Each broker has a folder in it.
FOLDER_VARIABLE = "SLUICEWAY_TEST_BROKER_DIR"

_SHORT_LIVED = "-XX:TieredStopAtLevel=1"  # a broker of some minutes does not repay the optimizing compiler


class SharedBrokers:
    """The folder of the run's brokers, in the controlling process."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sluiceway-tests-"))
        os.environ[FOLDER_VARIABLE] = str(self.folder)
        os.environ.setdefault(JVM_OPTIONS, _SHORT_LIVED)  # of every broker that a test starts, also by a command
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
    return EmbeddedBroker(folder).start(progress=lambda line: print(line, file=sys.stderr), timeout=READY_SECONDS)
