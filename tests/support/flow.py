"""A file source under constant load, and the arrival times of its records."""

from __future__ import annotations

import threading
import time
import uuid
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from support.eventually import LIMIT, eventually
from support.faults.cluster import Cluster

PER_SECOND = 50


class Writer:
    """Appends numbered lines to a file, evenly, in a thread, until it is closed."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.lines = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"writer-{file.name}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self.file.open("a", buffering=1) as file:
            while not self._stopping.wait(1 / PER_SECOND):
                file.write(f"{self.lines}\n")
                self.lines += 1

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)


class Arrivals:
    """Reads a topic with one partition in a thread; ``last`` is the newest record's arrival in monotonic seconds."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        Cluster(bootstrap).create(topic)
        self.values: list[Any] = []
        self.times: list[float] = []
        self._stopping = threading.Event()
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": uuid.uuid4().hex, "enable.auto.commit": False})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        self._thread = threading.Thread(target=self._run, name=f"arrivals-{topic}", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(1000, 0.05):
                if message.error() is None:
                    self.values.append(orjson.loads(message.value() or b"null"))
                    self.times.append(time.monotonic())
        self._consumer.close()

    @property
    def last(self) -> float:
        return self.times[-1] if self.times else float("-inf")

    def first_after(self, moment: float, within: float) -> float:
        """Wait for the first record after a time in monotonic seconds; return its arrival time."""
        found = eventually(lambda: self._after(moment), within=within, what="another record")
        return found[0]

    def _after(self, moment: float) -> list[float]:
        return [each for each in self.times[-5000:] if each > moment]

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)


class Flow:
    """A file source, the writer of its file and the reader of its topic. ``config`` has more keys of the connector."""

    def __init__(self, bootstrap: str, name: str, folder: Path, **config: str) -> None:
        self.name = name
        file = folder / f"{name}.txt"
        file.touch()
        self.config = {"connector.class": "FileStreamSource", "file": str(file), "topic": name, **config}
        self.arrivals = Arrivals(bootstrap, name)
        self.writer = Writer(file)

    def settle(self, within: float = LIMIT) -> tuple[int, int]:
        """Stop the writer and wait for the last line; return the numbers of lost lines and of repeated or reordered ones."""
        self.writer.close()
        expected = [str(number) for number in range(self.writer.lines)]
        eventually(lambda: expected[-1] in self._lines()[-5000:], within=within, what=f"line {expected[-1]}")
        lines = self._lines()
        lost = len(set(expected) - set(lines))
        return lost, len(lines) - (len(expected) - lost) + (0 if lines == sorted(lines, key=int) else 1)

    def _lines(self) -> list[str]:
        return [value["payload"] for value in self.arrivals.values]

    def close(self) -> None:
        self.writer.close()
        self.arrivals.close()
