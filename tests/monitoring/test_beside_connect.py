"""The metrics of a source and a sink beside those of Kafka Connect under the JMX exporter, with the same load at the same time.

Both run Kafka's quickstart: a file's lines to a topic, and the topic to a file. A thread appends the same lines to both files.
"""

from __future__ import annotations

import math
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sluiceway.stack import maven
from sluiceway.stack.ports import free_port
from sluiceway.stack.process import BackgroundProcess
from support.driver import write_properties
from support.engine_connectors import lines
from support.eventually import eventually
from support.peer import FILE_SINK, FILE_SOURCE, PeerStandalone, rest_answers

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.long]

EXPORTER = "io.prometheus.jmx:jmx_prometheus_javaagent:0.20.0"
"""The last version that keeps the suffix ``_total`` without rules."""
LINES_PER_SECOND = 400
STEADY_SECONDS = 75.0
"""After which rates cover two full windows of 30 s."""
MEAN_SECONDS = 30.0
"""Of which rates are the mean: those of Kafka Connect swing by several per cent as its windows begin and end."""
TOLERANCE = 0.05
STRING = "org.apache.kafka.connect.storage.StringConverter"

TASK_TYPES = ("source_task_metrics", "sink_task_metrics", "task_error_metrics", "connector_task_metrics")
CLIENT_METRICS = ("record_send_total", "record_send_rate", "records_consumed_total", "records_consumed_rate")
EXCEPT: Mapping[str, str] = {
    "connector_startup_success_percentage": "that of Kafka Connect is 0 again after a minute",
    "task_startup_success_percentage": "Kafka Connect 4.3.0 counts no starts of tasks",
    "task_startup_attempts_total": "Kafka Connect 4.3.0 counts no starts of tasks",
    "task_startup_success_total": "Kafka Connect 4.3.0 counts no starts of tasks",
    "offset_commit_completion_total": "Kafka Connect also counts intervals without new offsets",
    "offset_commit_seq_no": "Kafka Connect also counts intervals without new offsets",
    "offset_commit_skip_total": "always 0 here",
    "offset_commit_skip_rate": "always 0 here",
}
"""Metrics that need not agree, by the end of their names, with the reason."""

Samples = Mapping[str, float]


@dataclass
class Load:
    """Appends the same lines to several files at a steady rate."""

    files: list[Path]
    written: int = 0
    _ending: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def running(self) -> Iterator[None]:
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._ending.set()
            thread.join()

    def _run(self) -> None:
        began = time.monotonic()
        while not self._ending.wait(0.05):
            due = int((time.monotonic() - began) * LINES_PER_SECOND)
            text = "".join(f"line number {number}\n" for number in range(self.written, due))
            for file in self.files:
                with file.open("a") as opened:
                    opened.write(text)
            self.written = due


class Side:
    """The files and configs of one of the two."""

    def __init__(self, name: str, folder: Path, unique: Callable[[str], str]) -> None:
        self.folder = folder / name
        self.folder.mkdir()
        self.lines, self.out = self.folder / "lines.txt", self.folder / "out.txt"
        self.lines.touch()
        topic = unique(f"beside-{name}")
        source = {"name": "source", "connector.class": FILE_SOURCE, "tasks.max": "1", "file": str(self.lines), "topic": topic}
        # The name of a sink names its consumer group, so it differs between the two.
        self.sink = unique("sink")
        sink = {"name": self.sink, "connector.class": FILE_SINK, "tasks.max": "1", "file": str(self.out), "topics": topic}
        self.connectors = [source, sink]

    def samples(self, url: str) -> Samples:
        """Return the values that one scrape finds, by name and labels, with the sink's name replaced."""
        found = {}
        for family in text_string_to_metric_families(httpx.get(url, timeout=30).raise_for_status().text):
            for sample in family.samples:
                labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
                found[f"{sample.name}{{{labels}}}".replace(self.sink, "sink")] = sample.value
        return found

    def moved(self, count: int) -> bool:
        return len(lines(self.out)) >= count


def worker(bootstrap: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "offset.flush.interval.ms": "1000",
        "key.converter": STRING,
        "value.converter": STRING,
    }


@contextmanager
def connect(side: Side, bootstrap: str) -> Iterator[str]:
    """Run Kafka Connect, and yield the URL of its metrics."""
    (agent,) = maven.resolve([EXPORTER], title="the JMX exporter")
    rules = side.folder / "exporter.yml"
    rules.write_text("lowercaseOutputName: true\n")
    port = free_port()
    peer = PeerStandalone(bootstrap, side.folder, side.connectors, worker(bootstrap))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-javaagent:{agent}=127.0.0.1:{port}:{rules}")
        peer.start()
    try:
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        peer.stop()


@contextmanager
def sluiceway(side: Side, bootstrap: str) -> Iterator[str]:
    """Run Sluiceway in standalone mode, and yield the URL of its metrics under the exporter's names."""
    rest = f"http://127.0.0.1:{free_port()}"
    offsets = str(side.folder / "connect.offsets")
    properties = {**worker(bootstrap), "listeners": rest, "offset.storage.file.filename": offsets}
    files = [write_properties(side.folder / "worker.properties", properties)]
    files += [write_properties(side.folder / f"{number}.properties", each) for number, each in enumerate(side.connectors)]
    process = BackgroundProcess("standalone", [sys.executable, "-m", "sluiceway.cli.main", "standalone", *files], side.folder)
    process.start()
    try:
        process.wait_until(lambda: rest_answers(rest), 120)
        yield f"{rest}/metrics?names=jmx"
    finally:
        process.stop(60)


def mean(scrapes: Sequence[Samples]) -> Samples:
    return {name: statistics.fmean(each.get(name, math.nan) for each in scrapes) for name in scrapes[-1]}


def compared(name: str) -> bool:
    """Return whether a metric is a counter or a rate of tasks or of the worker, or of records of clients."""
    metric = name.partition("{")[0]
    if metric.endswith(CLIENT_METRICS):
        return "topic=" not in name and "node_id=" not in name
    counter = metric.endswith(("_total", "_rate", "_percentage", "_seq_no", "_partition_count"))
    of_connect = metric.startswith(tuple(f"kafka_connect_{kind}_" for kind in (*TASK_TYPES, "connect_worker_metrics")))
    errors = metric.startswith("kafka_connect_task_error_metrics_")
    return of_connect and (counter or errors)


def differences(theirs: Samples, ours: Samples, kind: str) -> list[str]:
    """Print a table of the values of both, and return the names of those that differ by more than 5 %."""
    wrong = []
    print(f"\n{kind:95} {'Connect':>12} {'Sluiceway':>12} {'difference':>10}")
    for name in sorted(filter(compared, theirs)):
        if name.partition("{")[0].endswith("_rate") is (kind == "counters"):
            continue
        a, b = theirs[name], ours.get(name, math.nan)
        difference = 0.0 if a == b else abs(a - b) / max(abs(a), abs(b))
        reason = next((why for end, why in EXCEPT.items() if name.partition("{")[0].endswith(end)), "")
        bad = not difference <= TOLERANCE and not reason
        print(f"{name:95} {a:12.2f} {b:12.2f} {difference:10.2%} {'WRONG' if bad else reason}")
        if bad:
            wrong.append(name)
    return wrong


def test_counters_and_rates_agree_with_those_of_kafka_connect(
    kafka_bootstrap: str, unique: Callable[[str], str], tmp_path: Path
) -> None:
    theirs, ours = Side("connect", tmp_path, unique), Side("sluiceway", tmp_path, unique)
    with ExitStack() as stack:
        urls = [stack.enter_context(connect(theirs, kafka_bootstrap)), stack.enter_context(sluiceway(ours, kafka_bootstrap))]
        load = Load([theirs.lines, ours.lines])
        with load.running():
            for side in (theirs, ours):
                eventually(partial(side.moved, 1), what=f"lines in {side.out}")
            deadline = time.monotonic() + STEADY_SECONDS
            eventually(lambda: time.monotonic() > deadline, within=2 * STEADY_SECONDS, what="two windows of steady load")
            scrapes: list[list[Samples]] = []

            def scraped() -> bool:
                scrapes.append([side.samples(url) for side, url in zip((theirs, ours), urls, strict=True)])
                return time.monotonic() > deadline + MEAN_SECONDS

            eventually(scraped, within=2 * MEAN_SECONDS, what="the scrapes")
            during = [mean(each) for each in zip(*scrapes, strict=True)]
        for side in (theirs, ours):
            eventually(partial(side.moved, load.written), what=f"{load.written} lines in {side.out}")
        settled = time.monotonic() + 8  # our tasks report every 5 s
        eventually(lambda: time.monotonic() > settled, what="the next report of each task")
        after = [side.samples(url) for side, url in zip((theirs, ours), urls, strict=True)]
    wrong = differences(during[0], during[1], "rates") + differences(after[0], after[1], "counters")
    assert wrong == []
