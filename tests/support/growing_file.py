"""A file that grows while a test looks on."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

from support.eventually import eventually


class GrowingFile:
    """A file to which a thread appends a numbered line every 20 ms; ``form`` is a line with {} for the number."""

    def __init__(self, path: Path, form: str = "line {}") -> None:
        self.path = path
        self._form = form
        self.written = 0
        self._end = threading.Event()
        path.touch()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        with self.path.open("a", buffering=1) as file:
            for number in itertools.count(1):
                if self._end.wait(0.02):
                    return
                file.write(f"{self._form.format(number)}\n")
                self.written = number

    def grows(self, lines: int = 20) -> None:
        """Wait until some more lines have been written."""
        wanted = self.written + lines
        eventually(lambda: self.written >= wanted, what=f"{lines} more lines in {self.path}")

    def close(self) -> list[str]:
        """Stop, and return all lines."""
        self._end.set()
        self._thread.join()
        return [self._form.format(number) for number in range(1, self.written + 1)]
