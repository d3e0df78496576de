"""Kills parts of a shared application at random while its sinks write, and checks that each record is there exactly once."""

from __future__ import annotations

import itertools
import os
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from support.clusters.kills import Kill
from support.eventually import eventually
from support.faults.feed import Feed
from support.frames.application import Sink, SinkApplication
from support.frames.outputs import ORPHAN_SECONDS, TABLES, Offsets, Row, value

PARTITIONS = 2
RATE = 100  # records per second and partition

_RECOVERY_SECONDS = 150.0
_QUIET_SECONDS = 60.0  # for the commit of what has been produced, on a busy machine
_REWIND = 100  # by how many records the offsets are set back
_AT_RANDOM_SECONDS = 3.0  # a kill comes within this time, so at any point of some commits


@dataclass(slots=True)
class SinkResult:
    """One format on one deployment.

    ``together`` is the number of formats in the application, which every kill strikes at once; ``orphans`` are the most
    uncommitted files that were there after a kill, ``left`` those after the last start; ``again`` counts the rows that came
    again after the offsets were set back by ``asked``; ``differences`` says where REST offsets and data differed.
    """

    format: str
    deployment: str
    together: int
    recovered: list[float] = field(default_factory=list)
    records: int = 0
    lost: int = 0
    twice: int = 0
    orphans: int = 0
    left: int = 0
    asked: int = 0
    again: int = 0
    differences: list[str] = field(default_factory=list)

    def judge(self) -> str:
        """Return what is wrong, empty if nothing is."""
        wrong = [
            f"{self.lost} lost" * (self.lost > 0),
            f"{self.twice} twice" * (self.twice > 0),
            f"{self.left} uncommitted files left" * (self.left > 0),
            f"{self.again} rows again, not {self.asked}" * (self.again != self.asked),
            *self.differences,
        ]
        return f"{self.format}: {'; '.join(filter(None, wrong))}" if any(wrong) else ""


class Scenario:
    """Kills, and checks after each of them and at the end.

    Args:
        app: the application; its sinks run.
        feed: what produces to their topic, with ``value``.
    """

    def __init__(self, app: SinkApplication, feed: Feed) -> None:
        self.app, self.feed = app, feed
        self.kinds: Counter[str] = Counter()
        self.results = [SinkResult(sink.output.format, app.deployment.name, len(app.sinks)) for sink in app.sinks]

    def kill(self, kills: Sequence[Kill], count: int, chance: random.Random) -> None:
        """Kill parts in random order; after each recovery, compare the REST offsets with the data.

        Every kind comes once before one comes again. MINUTES in the environment ends this earlier.
        """
        deadline = time.monotonic() + 60 * float(os.environ.get("MINUTES", "inf"))
        rounds = (chance.sample(kills, len(kills)) for _ in itertools.count())
        for number, kill in enumerate(itertools.islice(itertools.chain.from_iterable(rounds), count), 1):
            if time.monotonic() > deadline:
                break
            time.sleep(chance.uniform(0, _AT_RANDOM_SECONDS))
            seconds = self._strike(kill, chance)
            self._compare_offsets(f"after kill {number} ({kill.name})")
            self.kinds[kill.name] += 1
            print(f"kill {number:3} {kill.name:28} recovered after {seconds:5.1f} s, {self._ends()} records", flush=True)

    def _strike(self, kill: Kill, chance: random.Random) -> float:
        """Kill, wait for a successor and for newer records in all data; return the seconds of the slowest sink."""
        healed = kill.strike(self.app, chance)
        struck = time.monotonic()
        expected = self._ends()
        for sink, result in zip(self.app.sinks, self.results, strict=True):
            result.orphans = max(result.orphans, sink.output.orphans())
        eventually(healed, within=_RECOVERY_SECONDS, what=f"a successor after the kill of {kill.name}")
        reached = self.app.await_data(expected, _RECOVERY_SECONDS)
        kill.restore(self.app)
        for result in self.results:
            result.recovered.append(reached[result.format] - struck)
        return max(reached.values()) - struck

    def _ends(self) -> Offsets:
        """Return the next offset of each partition; the number of a record is its offset."""
        return {partition: last + 1 for partition, last in self.feed.sent.items()}

    def _compare_offsets(self, when: str) -> None:
        """Hold the feed until data and REST API have the topic's end, and note where they differ."""
        with self.feed.held():
            ends = self._ends()
            self.app.await_data(ends, _QUIET_SECONDS)
            for sink, result in zip(self.app.sinks, self.results, strict=True):
                data, shown = sink.output.offsets(), self._settled(sink, ends)
                if not ends == data == shown:
                    print(f"{sink.name}: {when}: REST {shown}, data {data}, topic {ends}", flush=True)
                    result.differences.append(f"{when}: REST {shown}, data {data}, topic {ends}")

    def _settled(self, sink: Sink, ends: Offsets, within: float = _QUIET_SECONDS) -> Offsets:
        """Return the REST offsets once they are the topic's ends, or what they are after a while."""
        deadline = time.monotonic() + within
        while (shown := self.app.offsets(sink)) != ends and time.monotonic() < deadline:
            time.sleep(0.1)
        return shown

    def check(self) -> None:
        """Stop the feed and the sinks, and count lost and repeated records."""
        self.feed.finish()
        self._compare_offsets("at the end")
        self.app.stop_sinks()
        expected = self._topic()
        for sink, result in zip(self.app.sinks, self.results, strict=True):
            found = sink.output.rows()
            result.records = expected.total()
            result.lost = (expected - found).total()
            result.twice = (found - expected).total()

    def rewind(self) -> None:
        """Set the stopped sinks' offsets back and start them once; count the rows that come again, and uncommitted files.

        The start comes after uncommitted files have reached the age from which table sinks delete them.
        """
        ends = self._ends()
        if any(sink.output.format in TABLES for sink in self.app.sinks):
            time.sleep(ORPHAN_SECONDS)
        for sink in self.app.sinks:
            self.app.set_offset(sink, 0, ends[0] - _REWIND)
            assert self.app.offsets(sink) == {**ends, 0: ends[0] - _REWIND}
        self.app.resume_sinks()
        for sink in self.app.sinks:
            assert self._settled(sink, ends, _RECOVERY_SECONDS) == ends, f"{sink.name}: {self.app.client.status(sink.name)}"
        self.app.stop_sinks()
        again = Counter((0, number) for number in range(ends[0] - _REWIND, ends[0]))
        for sink, result in zip(self.app.sinks, self.results, strict=True):
            result.asked, result.left = _REWIND, sink.output.orphans()
            more = sink.output.rows() - self._topic()
            result.again = more.total() if more == again else -1

    def _topic(self) -> Counter[Row]:
        return Counter((partition, number) for partition, end in self._ends().items() for number in range(end))


def sink_feed(bootstrap: str, topic: str) -> Feed:
    """Return a feed with a partition for each number in ``value``, not started yet."""
    return Feed(bootstrap, topic, rate=RATE, partitions=PARTITIONS, value=value)


_HEAD = ("format", "deployment", "kills", "recovered s (max)", "records", "lost", "twice", "orphans", "left", "again", "differ")
_FORMAT = "{:8} {:19} {:>5} {:>17} {:>8} {:>5} {:>5} {:>7} {:>5} {:>7} {:>6}"


def table(results: Sequence[SinkResult]) -> list[str]:
    """Return the lines of a table with a row for each format and deployment."""
    lines = [_FORMAT.format(*_HEAD)]
    for each in results:
        seconds = each.recovered or [0.0]
        recovered = f"{sum(seconds) / len(seconds):.1f} ({max(seconds):.1f})"
        again = f"{each.again}/{each.asked}"
        numbers = (each.records, each.lost, each.twice, each.orphans, each.left, again, len(each.differences))
        lines.append(_FORMAT.format(each.format, each.deployment, len(each.recovered), recovered, *numbers))
    together = max((each.together for each in results), default=0)
    return [*lines, f"Up to {together} formats share a driver: a kill of a driver, a host or a worker strikes all of them."]
