"""An embedded broker for a whole pytest run, one for each xdist worker: tests of two workers may use the same names.

The run's controlling process owns them: it makes the folder before any worker starts and stops the brokers when the session ends,
however it ends. A process that does nothing but wait stops them when the controlling process was killed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sluiceway.stack.broker import EmbeddedBroker

#: Names the run's folder to xdist workers, which inherit the environment. Each broker has a folder in it.
FOLDER_VARIABLE = "SLUICEWAY_TEST_BROKER_DIR"

# Sees its standard input close when the test run is gone, even by SIGKILL; then stops the brokers and removes the folder.
_GUARD = """
import signal, sys
from pathlib import Path
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.read()
sys.path.append(sys.argv[2])
from support.broker import stop_all
stop_all(Path(sys.argv[1]))
"""


class SharedBrokers:
    """The controlling process's side: knows the folder, and cleans up."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="sluiceway-tests-"))
        os.environ[FOLDER_VARIABLE] = str(self.folder)
        command = [sys.executable, "-c", _GUARD, str(self.folder), str(Path(__file__).parent.parent)]
        self._guard = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def close(self) -> None:
        """Stop what brokers tests have started, and remove their files."""
        os.environ.pop(FOLDER_VARIABLE, None)
        stop_all(self.folder)
        self._guard.communicate()  # closes its standard input, and it ends


def stop_all(folder: Path) -> None:
    """Stop the brokers of a run and remove the run's folder."""
    for each in folder.glob("*"):
        EmbeddedBroker(each).stop()
    shutil.rmtree(folder, ignore_errors=True)


def shared_bootstrap() -> str:
    """Return the address of this worker's broker, starting it if this is the first test to ask."""
    folder = Path(os.environ[FOLDER_VARIABLE], os.environ.get("PYTEST_XDIST_WORKER", "main"))
    return EmbeddedBroker(folder).start(progress=lambda line: print(line, file=sys.stderr))
