"""Runs tasks of DltSource without Kafka."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from sluiceway.api import SourceRecord
from sluiceway.connectors.dlt import DltSourceConnector
from sluiceway.runtime.memory import MemoryOffsets, MemorySourceContext
from support.eventually import eventually


def config_of(function: str, args: Mapping[str, Any] | None = None, **more: str) -> dict[str, str]:
    """Return a config of a function of ``support.dlt_sources``; ``more`` are other keys, with underscores for dots."""
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"name": "n", "dlt.source": f"support.dlt_sources.{function}", "dlt.args": json.dumps(args or {}), **given}


@contextmanager
def running(config: Mapping[str, str], offsets: MemoryOffsets | None = None) -> Iterator[Any]:
    """A task, as its connector makes it."""
    connector = DltSourceConnector()
    connector.start(config)
    [given] = connector.task_configs(1)
    task = DltSourceConnector.task_class()
    task.initialize(MemorySourceContext(given, offsets))
    task.start(given)
    try:
        yield task
    finally:
        task.stop()


def read(task: Any, count: int) -> list[SourceRecord]:
    """Poll until there are ``count`` records."""
    records: list[SourceRecord] = []

    def enough() -> bool:
        records.extend(task.poll() or ())
        return len(records) >= count

    eventually(enough, what=f"{count} records")
    return records


def read_run(task: Any, offsets: MemoryOffsets | None = None) -> list[SourceRecord]:
    """Poll until a run has ended; store the offsets of all records, and those that no record has."""
    records: list[SourceRecord] = []

    def ended() -> bool:
        found = task.poll() or ()
        records.extend(found)
        if offsets is not None:
            offsets.store_all(found)
            for partition, offset in task.idle_offsets() if not found else ():
                offsets.store(partition, offset)
        return bool(task.ended)

    eventually(ended, what="the end of the run")
    return records
