"""Writes thousands of files of many formats, and checks that the topics have each of their rows once, in order."""

from __future__ import annotations

import gzip
import io
import itertools
import random
import re
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import fastavro
import pyarrow as pa
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from support.eventually import LIMIT

_WIDTH = 9  # digits of a row's number
_NUMBER = re.compile(rb"\d{6,9}")
_TEXT = 960

Write = Callable[[Sequence[int], str], bytes]


def _numbers(numbers: Sequence[int]) -> list[str]:
    return [f"{each:0{_WIDTH}d}" for each in numbers]


def lines(numbers: Sequence[int], text: str) -> bytes:
    return "".join(f"{each} {text}\n" for each in _numbers(numbers)).encode()


def csv(numbers: Sequence[int], text: str) -> bytes:
    rows = "".join(f'{each},"{text[:400]}\n{text[400:]}",,x\n' for each in _numbers(numbers))
    return f"number,text,empty,last\n{rows}".encode()


def json_lines(numbers: Sequence[int], text: str) -> bytes:
    return "".join(f'{{"number":"{each}","text":"{text}"}}\n' for each in _numbers(numbers)).encode()


def gzip_lines(numbers: Sequence[int], text: str) -> bytes:
    return gzip.compress(lines(numbers, text), 1)


def _table(numbers: Sequence[int], text: str) -> pa.Table:
    texts = [f"{text}{each}" for each in _numbers(numbers)]  # no two alike, which would be stored once
    return pa.table({"number": _numbers(numbers), "text": texts}, pa.schema({"number": pa.utf8(), "text": pa.utf8()}))


def parquet(numbers: Sequence[int], text: str) -> bytes:
    import pyarrow.parquet as pq

    sink = io.BytesIO()
    pq.write_table(_table(numbers, text), sink, compression="none", row_group_size=100)
    return sink.getvalue()


def orc(numbers: Sequence[int], text: str) -> bytes:
    from pyarrow import orc as format_

    sink = io.BytesIO()
    format_.write_table(_table(numbers, text), sink, stripe_size=1 << 16)
    return sink.getvalue()


_ROW = fastavro.parse_schema(
    {"type": "record", "name": "Row", "fields": [{"name": "number", "type": "string"}, {"name": "text", "type": "string"}]}
)


def avro(numbers: Sequence[int], text: str) -> bytes:
    sink = io.BytesIO()
    fastavro.writer(sink, _ROW, ({"number": each, "text": text} for each in _numbers(numbers)))
    return sink.getvalue()


_PARTS = {"part.bytes": "262144"}  # the fewest: about every fifth file is larger

#: For each format of FolderSource, the writer of its files, their suffix, its config, and its share of all files.
KINDS: Mapping[str, tuple[Write, str, Mapping[str, str], float]] = {
    "lines": (lines, ".txt", {"format": "lines", **_PARTS}, 0.25),
    "csv": (csv, ".csv", {"format": "csv", "after.read": "delete", **_PARTS}, 0.2),
    "json": (json_lines, ".jsonl", {"format": "json"}, 0.2),
    "gzip": (gzip_lines, ".txt.gz", {"format": "lines", "after.read": "move"}, 0.1),
    "parquet": (parquet, ".parquet", {"format": "parquet", **_PARTS}, 0.1),
    "orc": (orc, ".orc", {"format": "orc", **_PARTS}, 0.05),
    "avro": (avro, ".avro", {"format": "avro", "after.read": "move", **_PARTS}, 0.1),
}


class ManyFiles:
    """Files of one format in a folder.

    Args:
        kind: one of ``KINDS``.
        folder: where its files are, made by this.
        count: the number of files.
        size: the bytes of a file, on average.
        chance: of the numbers of rows; one file in ten has none or one.
    """

    def __init__(self, kind: str, folder: Path, count: int, size: int, chance: random.Random) -> None:
        self.folder = folder
        self._write, self._suffix, self.config, _ = KINDS[kind]
        most = max(2, 2 * size * 10 // 9 // (_TEXT + _WIDTH))
        rows = [chance.randrange(2) if number % 10 == 0 else chance.randrange(1, most) for number in range(count)]
        self.expected = {str(folder / f"{number:06d}{self._suffix}"): each for number, each in enumerate(rows)}
        self._text = "".join(chance.choices("abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ", k=_TEXT))
        self._waiting = iter(self.expected.items())
        folder.mkdir(parents=True)

    def write(self, most: int) -> None:
        """Write up to this many files, as a program does that renames them when they are complete."""
        for path, rows in itertools.islice(self._waiting, most):
            temporary = Path(f"{path}.tmp")
            temporary.write_bytes(self._write(range(rows), self._text))
            temporary.rename(path)


@contextmanager
def written_meanwhile(many: Sequence[ManyFiles], seconds: float) -> Iterator[None]:
    """Write the files that are not written yet, each ``seconds`` one of each format, while the context lasts; then the rest."""
    stopping = threading.Event()

    def write() -> None:
        while not stopping.wait(seconds):
            for each in many:
                each.write(1)

    thread = threading.Thread(target=write, name="many-files")
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join(LIMIT)
        for each in many:
            each.write(len(each.expected))


class Counts:
    """Counts the rows of each file in topics with one partition, of which each must come once. A thread reads them.

    The parts of a file are read side by side, so that its rows need not come in order.
    """

    def __init__(self, address: str, topics: Sequence[str]) -> None:
        self.seen: dict[str, bytearray] = {}
        """For each file, a byte for each row that was seen."""
        self.rows = self.repeated = 0
        self._stopping = threading.Event()
        self._consumer = Consumer(
            {
                "bootstrap.servers": address,
                "group.id": uuid.uuid4().hex,
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
                "queued.max.messages.kbytes": 65536,
            }
        )
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])
        self._thread = threading.Thread(target=self._run, name="counts", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.consume(5000, 0.5):
                if message.error() is None:
                    self._count((message.key() or b"").decode(), message.value() or b"")
        self._consumer.close()

    def _count(self, path: str, value: bytes) -> None:
        found = _NUMBER.search(value)
        assert found is not None, value
        number, seen = int(found[0]), self.seen.setdefault(path, bytearray())
        if number >= len(seen):
            seen.extend(bytes(number + 1 - len(seen)))
        self.repeated += seen[number]
        seen[number] = 1
        self.rows += 1

    def missing(self, expected: Mapping[str, int]) -> int:
        """Return the number of rows that were not seen."""
        return sum(rows - sum(self.seen.get(path, b"")[:rows]) for path, rows in expected.items())

    def close(self) -> None:
        self._stopping.set()
        self._thread.join(LIMIT)
