"""Hands the standard input of standalone mode to the task that reads it, which runs in another process, through a named pipe."""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from sluiceway.config.environment import STANDARD_INPUT

if TYPE_CHECKING:
    from typing_extensions import Self

log = logging.getLogger(__name__)

_CHUNK = 1 << 16


class StandardInput:
    """Copies a descriptor into a pipe once a task has opened that. Processes that start inside ``with`` find the pipe.

    Nothing is read before: a process in the background must not read its terminal. What a task has not read when it stops is
    there for the next one.

    Args:
        descriptor: what is copied; standard input.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._folder = Path(tempfile.mkdtemp(prefix="sluiceway-input-"))
        self.pipe = self._folder / "stdin"
        os.mkfifo(self.pipe, 0o600)
        threading.Thread(target=self._copy, name="standard-input", daemon=True).start()

    def __enter__(self) -> Self:
        os.environ[STANDARD_INPUT] = str(self.pipe)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the pipe. The thread ends with the process, because a blocking read of a terminal cannot be interrupted."""
        os.environ.pop(STANDARD_INPUT, None)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _copy(self) -> None:
        try:
            writer = os.open(self.pipe, os.O_WRONLY)  # waits for the first reader
            os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)  # keeps the pipe and its contents while no task reads
            while chunk := os.read(self._descriptor, _CHUNK):
                while chunk:
                    chunk = chunk[os.write(writer, chunk) :]
        except OSError as error:
            log.warning("Standard input can no longer be read: %s", error)
