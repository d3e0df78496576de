"""Targets for tests: one without packages, which does what its config says, and what it was given."""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

from sluiceway.api import SinkRecord, TopicPartition
from sluiceway.connectors.singer import SingerSinkConnector
from sluiceway.connectors.singer.sink import SingerSinkTask
from sluiceway.runtime.memory import MemorySinkContext


@functools.cache
def fake_target() -> Path:
    """Return the program of the target, with the Python of the tests, which starts sooner than one that a shim finds."""
    folder = Path(tempfile.mkdtemp(prefix="fake-target-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program = folder / "fake_target.py"
    source = Path(__file__).with_name("fake_target.py").read_text(encoding="utf-8")
    program.write_text(f"#!{sys.executable} -ES\n{source}", encoding="utf-8")
    program.chmod(0o755)
    return program


def fake_sink(out: Path, target: dict[str, Any] | None = None, **more: str) -> dict[str, str]:
    """Return the config of a connector with the target of tests, which writes to ``out`` and does not wait after a failed run."""
    return {
        "name": "n",
        "connector.class": "SingerSink",
        "singer.target": str(fake_target()),
        "singer.config": json.dumps({"out": str(out), **(target or {})}),
        "flush.interval.ms": "3600000",
        "retry.backoff.ms": "0",
        **{key.replace("_", "."): value for key, value in more.items()},
    }


@contextmanager
def started_sink(config: dict[str, str], *, reports: bool = True) -> Iterator[tuple[SingerSinkTask, MemorySinkContext]]:
    """Yield a started task without Kafka, with its context."""
    connector = SingerSinkConnector()
    connector.start(config)
    [given] = connector.task_configs(1)
    task, context = SingerSinkTask(), MemorySinkContext({**config, **given}, reports=reports)
    task.initialize(context)
    task.start(given)
    try:
        yield task, context
    finally:
        task.stop()


def flush(task: SingerSinkTask, context: MemorySinkContext, offsets: dict[TopicPartition, int]) -> Any:
    """Call ``pre_commit`` as the runtime does before a pause, and return what it returns."""
    context.delivery_ends = True
    try:
        return task.pre_commit(offsets)
    finally:
        context.delivery_ends = False


def messages(out: Path) -> list[dict[str, Any]]:
    """Return the messages that the target of tests has written, with exact numbers."""
    return parsed(out.read_bytes().splitlines()) if out.exists() else []


def parsed(lines: Sequence[bytes] | Sequence[str]) -> list[dict[str, Any]]:
    return [json.loads(line, parse_float=Decimal) for line in lines]


def records_in(found: Sequence[dict[str, Any]], stream: str | None = None) -> list[dict[str, Any]]:
    """Return the records of RECORD messages, of one stream or of all."""
    return [each["record"] for each in found if each["type"] == "RECORD" and stream in (None, each["stream"])]


def record(offset: int, value: Any, topic: str = "orders", partition: int = 0, **more: Any) -> SinkRecord:
    return SinkRecord(topic, partition, offset, value, **more)
