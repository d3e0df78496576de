"""A source plugin whose records have timestamps: lines of files, each file a source partition, as ``fill`` writes them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sluiceway.api import ExactlyOnceSupport, SourceConnector, SourceRecord, SourceTask
from sluiceway.config.definition import ConfigDef
from sluiceway.config.intervals import Interval
from sluiceway.data import STRING_SCHEMA

TIMED_SOURCE = f"{__name__}.TimedSourceConnector"


def fill(
    folder: Path, partitions: int, intervals: Sequence[Interval], each: int, chance: random.Random
) -> dict[Interval, list[str]]:
    """Write files of lines with times in order, also at the very borders; return the lines of each interval."""
    found: dict[Interval, list[str]] = {interval: [] for interval in intervals}
    for partition in range(partitions):
        lines: list[str] = []
        for interval in intervals:
            count = chance.choice((0, each, 2 * each)) if partition else each
            times = [chance.randrange(interval.start, interval.end) for _ in range(count)]
            for time in sorted([*times, interval.start, interval.end - 1] if count else times):
                lines.append(f"{time} {partition}-{len(lines)}")
                found[interval].append(lines[-1])
        (folder / f"{partition}.txt").write_text("".join(f"{line}\n" for line in lines))
    return found


class TimedSourceTask(SourceTask):
    """Reads its files in turn, ``batch`` lines at each poll."""

    def start(self, config: Mapping[str, str]) -> None:
        self._topic, self._batch = config["topic"], int(config["batch"])
        self._partitions = [{"file": each} for each in config["files"].split(",")]
        lines = [Path(config["folder"], each["file"]).read_text().splitlines() for each in self._partitions]
        stored = self.context.offset_storage_reader.offsets(self._partitions)
        starts = [0 if offset is None else int(offset["line"]) for offset in stored]
        self._records = self._in_turn(lines, starts)

    def _in_turn(self, files: Sequence[Sequence[str]], starts: Sequence[int]) -> Iterator[SourceRecord]:
        for number in range(max(map(len, files), default=0)):
            for partition, lines, start in zip(self._partitions, files, starts, strict=True):
                if start + number < len(lines):
                    line = lines[start + number]
                    time = int(line.partition(" ")[0])
                    offset = {"line": start + number + 1}
                    yield SourceRecord(partition, offset, self._topic, line, STRING_SCHEMA, timestamp=time)

    def poll(self) -> Sequence[SourceRecord] | None:
        self.context.wait(0.01)
        return [record for _, record in zip(range(self._batch), self._records, strict=False)] or None


class TimedSourceConnector(SourceConnector):
    """Gives each of its tasks some of the files."""

    task_class = TimedSourceTask

    @classmethod
    def config_def(cls) -> ConfigDef:
        return ConfigDef([])

    def start(self, config: Mapping[str, str]) -> None:
        self._config = dict(config)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        files = sorted(each.name for each in Path(self._config["folder"]).iterdir())
        parts = [files[number::max_tasks] for number in range(max_tasks)]
        return [{**self._config, "files": ",".join(part)} for part in parts if part]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport:
        return ExactlyOnceSupport.SUPPORTED
