"""Makes the class archives of the local stack: that of Spark's drivers, and that of the embedded broker.

The local stack runs ``python -m sluiceway.stack.class_archives`` in the background. It does nothing if both exist. Archives are
optional: without them, JVMs start slower.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import psutil

from sluiceway import class_archives
from sluiceway.errors import ConnectError
from sluiceway.folders import scratch_folder
from sluiceway.spark import class_archive
from sluiceway.stack.broker import EmbeddedBroker, broker_archive, broker_jars

_TIMEOUT_SECONDS = 600.0
_TERMINATED = 128 + signal.SIGTERM  # the exit code of a JVM that has ended after this signal


def make_broker_archive() -> Path:
    """Make the broker's archive with a broker of its own, unless it exists; return its path. Raises ConnectError."""
    return class_archives.make_once(broker_archive(broker_jars()), _record)


def _record(archive: Path) -> None:
    with scratch_folder("broker-classes") as folder:
        broker = EmbeddedBroker(folder, recorded_classes=archive)
        broker.start(timeout=_TIMEOUT_SECONDS)
        code = _end(broker)
        if code != _TERMINATED or not archive.is_file():
            msg = f"A broker wrote no class archive to {archive} (exit code {code}). Brokers start without it."
            raise ConnectError(msg)


def _end(broker: EmbeddedBroker) -> int | None:
    """End a broker that this process has started, and return its exit code, or None if it did not end in time."""
    process = psutil.Process(broker.status().pid)
    process.terminate()
    try:
        return process.wait(_TIMEOUT_SECONDS)  # the JVM writes the archive before it ends
    except psutil.TimeoutExpired:
        return None
    finally:
        broker.stop()


def main() -> int:
    """Make both archives and print their paths; return the exit code."""
    code = 0
    for make in (class_archive.make, make_broker_archive):
        try:
            print(make())  # noqa: T201 (a program's result)
        except (ConnectError, OSError) as error:
            print(error, file=sys.stderr)  # noqa: T201 (a program's result)
            code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
