"""Measures how soon Java plugins answer: the list of plugins, validation, a task's first record beside a Python task's; memory.

Run: python tests/benchmarks/bench_plugins_start.py [--rounds N]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import httpx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from bench_plugins import Bench, debezium_config, opened
from bench_plugins import ours as our_task
from bench_rest import rest_server

from sluiceway.stack.ports import free_port
from support.eventually import SOONEST, eventually
from support.many_connectors import worker_properties
from support.peer import FILE_SOURCE
from support.plugin_checks import Measurement

_WARM_CALLS = 20


class Answers(NamedTuple):
    """Seconds until the REST API of a new server answers."""

    cached_list: float
    cold_validation: float
    warm_validation: float


class Start(NamedTuple):
    """Seconds from a process's start to its task's first record in Kafka, in both languages; memory of the JVM in MB."""

    python: float
    java: float
    memory: float

    @property
    def later(self) -> float:
        return self.java - self.python


def answers(bench: Bench, folder: Path) -> Answers:
    """Measure a new REST server. Another one has scanned the plugins before."""
    rest = f"http://127.0.0.1:{free_port()}"
    properties = {**worker_properties(bench.bootstrap, uuid.uuid4().hex[:8], rest), "plugin.path": str(bench.plugin_path)}
    with rest_server(properties, folder):
        httpx.get(f"{rest}/connector-plugins", timeout=120).raise_for_status()
    config = debezium_config(f"v_{uuid.uuid4().hex[:8]}", bench.postgres.first)
    url = f"{rest}/connector-plugins/{config['connector.class']}/config/validate"

    def validation() -> float:
        return _seconds(lambda: httpx.put(url, json=config, timeout=120))

    with rest_server(properties, folder):
        listed = _seconds(lambda: httpx.get(f"{rest}/connector-plugins", timeout=120))
        return Answers(listed, validation(), statistics.median(validation() for _ in range(_WARM_CALLS)))


def _seconds(request: Callable[[], httpx.Response]) -> float:
    started = time.perf_counter()
    response = request()
    seconds = time.perf_counter() - started
    response.raise_for_status()
    return seconds


def start(bench: Bench) -> Start:
    """Measure the first records of a task in Python and of the same in Java."""
    python, _ = _first_record(bench, "fallback")
    java, memory = _first_record(bench, "prefer")
    return Start(python, java, memory)


def _first_record(bench: Bench, java: str) -> tuple[float, float]:
    name = bench.topic("start")
    config: Mapping[str, str] = {
        "name": name,
        "connector.class": FILE_SOURCE,
        "task.class": "org.apache.kafka.connect.file.FileStreamSourceTask",
        "file": str(bench.input),
        "topic": name,
    }
    started = time.monotonic()
    with our_task(dict(config), bench.bootstrap, bench.plugin_path, java) as process:
        eventually(lambda: bench.end(name) > 0, within=120, what="the first record", latest=SOONEST)
        seconds = time.monotonic() - started
        eventually(lambda: bench.end(name) >= bench.records, within=300, what="all records")
        machines = [each for each in process.children(recursive=True) if each.name() == "java"]
        return seconds, sum(each.memory_info().rss for each in machines) / (1 << 20)


def figures_of(found: Sequence[tuple[Answers, Start]]) -> dict[str, Measurement]:
    """Return the medians, by their names in the checks."""
    answered, started = zip(*found, strict=True)

    def figure(what: str, values: Iterable[float], most: float, unit: str) -> Measurement:
        value = statistics.median(values)
        return Measurement(f"{what}: {value:.2f} {unit} (goal {most:g})", value <= most)

    return {
        "list": figure("list of plugins of a new REST server", (each.cached_list for each in answered), 1, "s"),
        "cold validation": figure("validation of Debezium, cold", (each.cold_validation for each in answered), 3, "s"),
        "warm validation": figure("validation of Debezium, warm", (each.warm_validation for each in answered), 0.1, "s"),
        "first record": figure("first record of a Java task after a Python task's", (each.later for each in started), 3, "s"),
        "memory": figure("memory of a Java task's JVM, heap of 256 MB", (each.memory for each in started), 260, "MB"),
    }


def rounds_of(bench: Bench, rounds: int) -> list[tuple[Answers, Start]]:
    """Measure in rounds."""
    found = []
    for number in range(rounds):
        each = answers(bench, bench.folder), start(bench)
        print(f"round {number + 1}: {each[0]}, {each[1]}", flush=True)
        found.append(each)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=100_000)
    options = parser.parse_args()
    with opened(options.records) as bench:
        for name, figure in figures_of(rounds_of(bench, options.rounds)).items():
            print(f"{'yes' if figure.good else 'NO ':3}  {name:16}  {figure.text}")


if __name__ == "__main__":
    main()
