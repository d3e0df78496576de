"""Runs one source task in a process of its own until its input ends, then prints the process's peak memory.

``python -m cdc.measured_task FILE``: the file has the task's config and the worker's properties as JSON.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.engine import RunningTask

_LIMIT_SECONDS = 120


class MeasuredTask:
    """A running process; ``peak`` is its peak resident memory in bytes, once it has ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.peak = 0


@contextmanager
def measured_task(folder: Path, config: Mapping[str, str], worker: Mapping[str, str]) -> Iterator[MeasuredTask]:
    """Run a task in a process of its own until the end of the block. Fails if the task has failed."""
    file = folder / "task.json"
    file.write_text(json.dumps([dict(config), dict(worker)]))
    command = [sys.executable, "-m", "cdc.measured_task", str(file)]
    with (folder / "task.log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, cwd=Path(__file__).parents[1]
        )
    made = MeasuredTask(process)
    try:
        yield made
        answer, _ = process.communicate(timeout=_LIMIT_SECONDS)
        assert process.returncode == 0, answer + (folder / "task.log").read_text()[-5000:]
        made.peak = int(answer.split()[-1])
    finally:
        process.kill()
        process.wait()


def main() -> None:
    config, worker = json.loads(Path(sys.argv[1]).read_text())
    with RunningTask(config, worker) as task:
        sys.stdin.read()
        result = task.stop()
    print(result.trace or "", _peak())
    sys.exit(result.failed)


def _peak() -> int:
    """Return this process's peak resident memory in bytes. The one of ``getrusage`` begins with that of its parent."""
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    return int(kilobytes) * 1024


if __name__ == "__main__":
    main()
