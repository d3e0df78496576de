"""One embedded broker for a whole pytest run, shared by all xdist workers.

The run's controlling process owns it: it makes the folder before any worker starts and stops the broker when the session ends,
however it ends. A process that does nothing but wait stops the broker when the controlling process was killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sluiceway.stack.broker import EmbeddedBroker

#: Names the run's folder to xdist workers, which inherit the environment.
FOLDER_VARIABLE = "SLUICEWAY_TEST_BROKER_DIR"

# Sees its standard input close when the test run is gone, even by SIGKILL; then stops the broker and removes the folder.
_GUARD = """
import shutil, signal, sys
from pathlib import Path
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.read()
from sluiceway.stack.broker import EmbeddedBroker
folder = Path(sys.argv[1])
if folder.exists():
    EmbeddedBroker(folder).stop()
    shutil.rmtree(folder, ignore_errors=True)
"""


class SharedBroker:
    """The controlling process's side: knows the folder, and cleans up."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sluiceway-tests-"))
        os.environ[FOLDER_VARIABLE] = str(self.folder)
        self._guard = subprocess.Popen(
            [sys.executable, "-c", _GUARD, str(self.folder)], stdin=subprocess.PIPE, start_new_session=True
        )

    def close(self) -> None:
        """Stop the broker, if any test started it, and remove its files."""
        os.environ.pop(FOLDER_VARIABLE, None)
        if self.folder.exists():
            EmbeddedBroker(self.folder).stop()
            shutil.rmtree(self.folder, ignore_errors=True)
        self._guard.communicate()  # closes its standard input, and it ends


def shared_bootstrap() -> str:
    """Return the run's broker's address, starting it if this is the first process to ask. Called in any worker."""
    return EmbeddedBroker(Path(os.environ[FOLDER_VARIABLE])).start(progress=lambda line: print(line, file=sys.stderr))
