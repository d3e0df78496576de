"""A log that is written and rotated in each way that programs have, by a clock of its own."""

from __future__ import annotations

import gzip
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

_BEGAN = 1_700_000_000


class RotatedLog:
    """Writes numbered lines to a log, and rotates it.

    Args:
        path: the log's path.
        real_time: whether times of modification are real. Otherwise they are those of a clock that each step advances.
    """

    def __init__(self, path: Path, *, real_time: bool = False) -> None:
        self.path = path
        self._real_time = real_time
        self.written = 0
        self._rotations = 0
        self._clock = _BEGAN
        self._handle = path.open("ab", buffering=0)

    def write(self, count: int, size: int = 20) -> None:
        """Append this many lines of at least ``size`` bytes."""
        self._handle.write(b"".join(b"%06d %s\n" % (self.written + number, b"x" * size) for number in range(count)))
        self.written += count
        self._tick(self.path)

    def write_in_parts(self, wait: Callable[[float], object], seconds: float) -> None:
        """Append a line in two writes."""
        text = b"%06d in two parts\n" % self.written
        self._handle.write(text[:9])
        wait(seconds)
        self._handle.write(text[9:])
        self.written += 1
        self._tick(self.path)

    def write_in_part(self, text: bytes) -> None:
        """Append a part of a line."""
        self._handle.write(text)
        self._tick(self.path)

    def rotate(self, mode: str) -> None:
        self._clock += 1
        MODES[mode](self)

    def _tick(self, path: Path) -> None:
        self._clock += 1
        if path.exists() and not self._real_time:
            os.utime(path, (self._clock, self._clock))

    def _generation(self, number: int, extension: str = "") -> Path:
        return self.path.with_name(f"{self.path.name}.{number}{extension}")

    def _create(self) -> None:
        self._handle.close()
        self._handle = self.path.open("ab", buffering=0)
        self._tick(self.path)

    def _shift(self) -> Path:
        """Give each generation the next number, and return the path of the first one."""
        for number in range(self._rotations, 0, -1):
            for extension in ("", ".gz"):
                if self._generation(number, extension).exists():
                    self._generation(number, extension).rename(self._generation(number + 1, extension))
        self._rotations += 1
        return self._generation(1)

    def rename(self) -> None:
        """As logrotate does."""
        self.path.rename(self._shift())
        self._create()

    def count_up(self) -> None:
        """As Log4j does: the newest generation has the highest number."""
        self._rotations += 1
        self.path.rename(self._generation(self._rotations))
        self._create()

    def date(self) -> None:
        """As logrotate does with ``dateext``."""
        self._rotations += 1
        self.path.rename(self.path.with_name(f"{self.path.name}-{20260100 + self._rotations}"))
        self._create()

    def date_in_stem(self) -> None:
        """As Logback does."""
        self._rotations += 1
        self.path.rename(self.path.with_name(f"{self.path.stem}-2026-01-{self._rotations:02}{self.path.suffix}"))
        self._create()

    def compress(self) -> None:
        """As logrotate does with ``compress``."""
        plain = self._shift()
        self.path.rename(plain)
        self._create()
        self._zip(plain)

    def compress_later(self) -> None:
        """As logrotate does with ``delaycompress``: each generation is compressed at the next rotation."""
        plain = self._shift()
        if self._generation(2).exists():
            self._zip(self._generation(2))
        self.path.rename(plain)
        self._create()

    def copy_and_truncate(self) -> None:
        """As logrotate does with ``copytruncate``."""
        copy = self._shift()
        shutil.copyfile(self.path, copy)
        self._tick(copy)
        os.truncate(self.path, 0)
        self._tick(self.path)

    def delete(self) -> None:
        """Delete the log and create it: what was not read before is lost."""
        self.path.unlink()
        self._create()

    def replace(self) -> None:
        """Replace the log by another file: what was not read before is lost."""
        other = self.path.with_name(f"{self.path.name}.new")
        other.touch()
        other.rename(self.path)
        self._create()

    def overwrite(self) -> None:
        """Truncate the log without a copy: what was not read before is lost."""
        os.truncate(self.path, 0)
        self._tick(self.path)

    def close(self) -> None:
        self._handle.close()

    @staticmethod
    def _zip(plain: Path) -> None:
        """As gzip does, which keeps the time of modification."""
        status = plain.stat()
        target = plain.with_name(f"{plain.name}.gz")
        target.write_bytes(gzip.compress(plain.read_bytes(), 1, mtime=int(status.st_mtime)))
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
        plain.unlink()


#: Rotations that keep what was written.
KEEPING: Mapping[str, Callable[[RotatedLog], None]] = {
    "rename": RotatedLog.rename,
    "count up": RotatedLog.count_up,
    "date": RotatedLog.date,
    "date in stem": RotatedLog.date_in_stem,
    "compress": RotatedLog.compress,
    "compress later": RotatedLog.compress_later,
    "copy and truncate": RotatedLog.copy_and_truncate,
}
#: Rotations that do not.
LOSING: Mapping[str, Callable[[RotatedLog], None]] = {
    "delete": RotatedLog.delete,
    "replace": RotatedLog.replace,
    "overwrite": RotatedLog.overwrite,
}
MODES = {**KEEPING, **LOSING}
