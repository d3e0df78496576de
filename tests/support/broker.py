"""An embedded broker for a whole pytest run, one for each xdist worker: tests of two workers may use the same names.

The run's controlling process owns them: it makes the folder before any worker starts and stops the brokers when the session ends,
however it ends.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from sluiceway.stack.broker import EmbeddedBroker
from support.guard import Guard

#: Names the run's folder to xdist workers, which inherit the environment. Each broker has a folder in it.
FOLDER_VARIABLE = "SLUICEWAY_TEST_BROKER_DIR"


class SharedBrokers:
    """The controlling process's side: knows the folder, and cleans up."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sluiceway-tests-"))
        os.environ[FOLDER_VARIABLE] = str(self.folder)
        self._guard = Guard(stop_all, self.folder)

    def close(self) -> None:
        """Stop what brokers tests have started, and remove their files."""
        os.environ.pop(FOLDER_VARIABLE, None)
        stop_all(self.folder)
        self._guard.close()


def stop_all(folder: str | Path) -> None:
    """Stop the brokers of a run and remove the run's folder."""
    for each in Path(folder).glob("*"):
        EmbeddedBroker(each).stop()
    shutil.rmtree(folder, ignore_errors=True)


def shared_bootstrap() -> str:
    """Return the address of this worker's broker, starting it if this is the first test to ask."""
    folder = Path(os.environ[FOLDER_VARIABLE], os.environ.get("PYTEST_XDIST_WORKER", "main"))
    return EmbeddedBroker(folder).start(progress=lambda line: print(line, file=sys.stderr))
