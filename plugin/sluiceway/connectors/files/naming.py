"""Names of the files and folders that file sinks write. No I/O."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass, replace
from datetime import datetime, timezone

from sluiceway.config.intervals import IntervalRun
from sluiceway.connectors.path_elements import check_length, path_element


@dataclass(frozen=True, slots=True)
class FileNames:
    """Names the files of one topic partition as Confluent's sinks do.

    Attributes:
        topics_dir: the folder of all topics, without a slash at its end.
        file_delim: separates the parts of a name.
        zero_pad: the least number of digits of an offset.
        with_last: whether names end with the last offset too, as those of the HDFS sink do.
        mark: what names have of the interval whose files they are; empty without one.
    """

    topics_dir: str
    directory_delim: str = "/"
    file_delim: str = "+"
    zero_pad: int = 10
    with_last: bool = True
    mark: str = ""

    def folder(self, topic: str, encoded_partition: str) -> str:
        """Return the folder of a topic's files with this encoded partition. Raises DataError as ``topic_element``."""
        return self.directory_delim.join(part for part in (self.topics_dir, topic_element(topic), encoded_partition) if part)

    def name(self, topic: str, partition: int, first: int, last: int, extension: str, epoch: int = 0) -> str:
        """Return a file's name. Names of a later epoch differ from those written before offsets were set back."""
        parts = [topic, str(partition), f"{first:0{self.zero_pad}d}"]
        if self.with_last:
            parts.append(f"{last:0{self.zero_pad}d}")
        return f"{self.file_delim.join(parts)}{f'.e{epoch}' if epoch else ''}{self.mark}{extension}"


def interval_mark(run: IntervalRun) -> str:
    """Return what the names of an interval's files have.

    The start in UTC, a number for the connector, because several may write to one folder, and the attempt from the second on.
    """
    start = datetime.fromtimestamp(run.interval.start / 1000, timezone.utc)
    milliseconds = f"{run.interval.start % 1000:03d}" if run.interval.start % 1000 else ""
    connector = f"{zlib.crc32(run.connector.encode()):08x}"
    return f".{start:%Y%m%dT%H%M%S}{milliseconds}Z-{connector}" + (f".{run.attempt}" if run.attempt > 1 else "")


def is_of_earlier_attempt(name: str, run: IntervalRun) -> bool:
    """Return whether a file is one of the run's interval that another attempt has written."""
    first = re.escape(interval_mark(replace(run, attempt=1)))
    match = re.search(rf"{first}(?:\.(\d+))?(?=\.|$)", name)
    return match is not None and int(match[1] or 1) != run.attempt


def topic_element(topic: str) -> str:
    """Return the folder's name of a topic, which transforms may have made of any text. Raises DataError if it is too long."""
    return check_length(path_element(topic))
