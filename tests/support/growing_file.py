"""Files that grow while a test looks on."""

from __future__ import annotations

import itertools
import threading
import time
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


class LinesInTime:
    """When each line of a file was seen, in seconds since the epoch. A thread looks each 50 ms. The file may not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._times: dict[str, list[float]] = {}
        self._read = 0
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)
        self._thread.start()

    def _look_on(self) -> None:
        while not self._end.wait(0.05):
            self.look()

    def look(self) -> None:
        """See the lines that have been written until now."""
        with self._lock:
            if not self._path.exists():
                return
            with self._path.open("rb") as file:
                file.seek(self._read)
                lines = file.read().rpartition(b"\n")[0]
            now = time.time()
            for line in lines.splitlines():
                self._times.setdefault(line.decode(), []).append(now)
            self._read += len(lines) + bool(lines)

    def close(self) -> dict[str, list[float]]:
        """Stop, and return the times of each line, one for each copy."""
        self._end.set()
        self._thread.join()
        self.look()
        return self._times
