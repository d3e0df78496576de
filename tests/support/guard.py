"""Cleans up after a test run, even one killed with SIGKILL: a process that waits for the run's end."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from sluiceway.stack.process import BackgroundProcess

# Its standard input closes when the process that started it is gone.
_WAIT = """
import importlib, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
sys.stdin.read()
folder, module, name, *arguments = sys.argv[1:]
sys.path.append(folder)
getattr(importlib.import_module(module), name)(*arguments)
"""


class Guard:
    """Calls a module's function with string arguments when this process has ended or the guard is closed."""

    def __init__(self, end: Callable[..., object], *arguments: object) -> None:
        tests = str(Path(__file__).parent.parent)
        command = [sys.executable, "-c", _WAIT, tests, end.__module__, end.__name__, *map(str, arguments)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def close(self) -> None:
        """Call the function and wait until it returns. May be called more than once."""
        if self._process.poll() is None:
            self._process.communicate()  # closes its standard input


def stop(folder: str | Path, *names: str) -> None:
    """Stop the background processes of a folder, from any process."""
    for name in names:
        BackgroundProcess(name, [], Path(folder)).stop()
