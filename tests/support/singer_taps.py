"""Taps for tests: one without packages, which prints what its config says, and real ones, installed once for a test run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sluiceway.connectors.singer import SingerSourceConnector
from sluiceway.connectors.singer.source import SingerSourceTask
from sluiceway.folders import cache_home
from sluiceway.java_plugins.installed import LOCK_NAME, PluginFolder, folder_name
from sluiceway.runtime.memory import MemoryOffsets, MemorySourceContext
from sluiceway.stack.plugin_install import install

FAKE_TAP = Path(__file__).with_name("fake_tap.py")
PARTITION = {"tap": FAKE_TAP.name}


def fake_config(tap: dict[str, Any], **more: str) -> dict[str, str]:
    """Return the config of a connector with the tap of tests, without a pause between its runs."""
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {
        "name": "n",
        "connector.class": "SingerSource",
        "singer.tap": str(FAKE_TAP),
        "singer.config": json.dumps(tap),
        "poll.interval.ms": "0",
        **given,
    }


def stored(offsets: MemoryOffsets) -> Any:
    """Return the state in the stored offset; None if there is none."""
    offset = offsets.offset(PARTITION)
    return None if offset is None else json.loads(offset["state"])


@contextmanager
def started(config: dict[str, str], offsets: MemoryOffsets | None = None) -> Iterator[SingerSourceTask]:
    """Yield a started task without Kafka, whose context has the bad records if the config tolerates them."""
    connector = SingerSourceConnector()
    connector.start(config)
    [given] = connector.task_configs(8)
    task = SingerSourceTask()
    task.initialize(MemorySourceContext({**config, **given}, offsets))
    task.start(given)
    try:
        yield task
    finally:
        task.stop()


def is_running(pid: int) -> bool:
    """Return whether a process exists and is not dead already."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def installed(requirement: str) -> Path:
    """Return a folder of ``plugin.path`` with this tap from the package index, which the machine's cache keeps.

    Takes minutes the first time.
    """
    folder = cache_home() / "test-taps" / folder_name(requirement)
    if not (folder / LOCK_NAME).exists():
        install(PluginFolder(folder), f"singer:{requirement}", print)
    return folder


def program_of(folder: Path, command: list[str]) -> Path:
    """Write a program that runs a command, and return its path."""
    file = folder / command[-1]
    quoted = " ".join("'" + part.replace("'", "'\\''") + "'" for part in command)
    file.write_text(f'#!/bin/sh\nexec {quoted} "$@"\n')
    file.chmod(0o755)
    return file
