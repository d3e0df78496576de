"""The main job on a real stack: a file through Kafka to a file, as two DAGs on Spark. All tests of ``tests/airflow`` share it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.eventually import eventually
from support.stack import RunningStack

SOURCE, SINK, TOPIC = "main-source", "main-sink", "main-topic"


@dataclass
class MainJob:
    """A file source and a file sink that are RUNNING most of the time, and their files."""

    stack: RunningStack
    source: Path
    copy: Path
    written: int = 0

    def write(self, count: int) -> list[str]:
        """Append lines to the source file, each different, and return them."""
        lines = [f"line {number}" for number in range(self.written, self.written + count)]
        with self.source.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        self.written += count
        return lines

    def lines(self) -> list[str]:
        return self.copy.read_text().splitlines() if self.copy.exists() else []

    def await_equal(self) -> None:
        eventually(lambda: self.lines() == self.source.read_text().splitlines(), what="the copy")

    def await_all(self) -> None:
        """Wait until every line has arrived at least once: after a kill -9, uncommitted lines are repeated."""
        eventually(lambda: set(self.lines()) == set(self.source.read_text().splitlines()), what="every line")
