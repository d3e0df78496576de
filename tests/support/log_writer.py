"""Programs that write logs and rotate them while something reads them."""

from __future__ import annotations

import random
import threading
from collections.abc import Mapping
from pathlib import Path

from support.eventually import LIMIT
from support.rotated_log import RotatedLog

_PARTIAL = 0.02


class LogWriters:
    """One program for each way to rotate, on one thread. Each writes to ``folder/<mode>/app.log`` while the context lasts.

    Args:
        folder: the folder of all.
        modes: the ways to rotate.
        every: after how many lines a log is rotated.
        rate: lines a second of each.
        seed: of which lines are written in two parts.
        pause: seconds between two writes to each log.
    """

    def __init__(
        self, folder: Path, modes: Mapping[str, object], every: int, rate: int, seed: int = 1, pause: float = 0.01
    ) -> None:
        self.logs: dict[str, RotatedLog] = {}
        for mode in modes:
            path = folder / mode.replace(" ", "-") / "app.log"
            path.parent.mkdir(parents=True)
            self.logs[mode] = RotatedLog(path, real_time=True)
        self._every = every
        self._pause = pause
        self._count = max(1, round(rate * pause))
        self._chance = random.Random(seed)  # noqa: S311 (not for cryptography)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="log-writers")

    def __enter__(self) -> LogWriters:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)

    def close(self) -> None:
        for each in self.logs.values():
            each.close()

    def written(self) -> dict[str, int]:
        """Return the number of lines of each log by its path."""
        return {str(each.path): each.written for each in self.logs.values()}

    def _run(self) -> None:
        due = dict.fromkeys(self.logs, self._every)
        while not self._stopping.wait(self._pause):
            for mode, log in self.logs.items():
                if self._chance.random() < _PARTIAL:
                    log.write_in_parts(self._stopping.wait, self._pause)
                log.write(self._count, 100)
                if log.written >= due[mode]:
                    log.rotate(mode)
                    due[mode] = log.written + self._every
