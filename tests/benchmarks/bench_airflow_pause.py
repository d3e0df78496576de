"""Measures how fast a running connector pauses and resumes, for every way to request it.

Run: python tests/benchmarks/bench_airflow_pause.py [--rounds N] [--quiet LOAD] [--api-workers N]

Runs on a real stack: Airflow with PostgreSQL, LocalExecutor and several API server workers, a broker, and a file source under
constant load. Limits: the last record at most 3 s after the pause, the first at most 10 s after the resume, no line lost or
repeated.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from support.flow import Flow
from support.stack import RunningStack
from support.toggles import PAUSE_LIMIT, RESUME_LIMIT, WAYS, Round, play, table

LONG_PAUSE = 35.0  # seconds after which the task has released its slot; every fourth pause lasts this long
_QUIET_PATIENCE = 600.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--quiet", type=float, default=0.0, help="wait up to 10 min for a load average below this before a round")
    parser.add_argument("--api-workers", type=int, default=2, help="processes of the API server, of which one mirrors")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluiceway-pause-") as folder:
        stack = RunningStack(Path(folder) / "stack", postgres=True, settings={"API__WORKERS": str(options.api_workers)})
        try:
            return measure(stack, Path(folder), options.rounds, options.quiet)
        finally:
            stack.close()


def measure(stack: RunningStack, folder: Path, rounds: int, quiet: float) -> int:
    flow = Flow(stack.addresses.bootstrap, "steady", folder)
    try:
        stack.connect.create(flow.name, flow.config)
        stack.await_states(flow.name, "RUNNING", "RUNNING", within=300)
        stack.await_class_archive()
        ways = itertools.cycle(WAYS)
        pairs = [(next(ways), next(ways)) for _ in range(rounds)]  # five ways, so that each is used to pause and to resume
        done: list[Round] = []
        for pause, resume in pairs:
            await_quiet(quiet)
            done.append(play(stack, flow, pause, resume, LONG_PAUSE if len(done) % 4 == 3 else 0.0))
            print("  ".join(done[-1].cells()), file=sys.stderr, flush=True)
        lost, repeated = flow.settle()
    finally:
        flow.close()
    print(table(("round", *Round.HEADINGS), [[str(number), *each.cells()] for number, each in enumerate(done, 1)]))
    stops, starts = [each.stopped for each in done], [each.flowing for each in done]
    held = sum(each.holds for each in done)
    print(f"\nlast record: median {statistics.median(stops):.1f} s, longest {max(stops):.1f} s, limit {PAUSE_LIMIT:g} s")
    print(f"first record: median {statistics.median(starts):.1f} s, longest {max(starts):.1f} s, limit {RESUME_LIMIT:g} s")
    print(f"{held} of {len(done)} rounds within the limits; {flow.writer.lines} lines: {lost} lost, {repeated} repeated")
    return 0 if held == len(done) and lost == repeated == 0 else 1


def await_quiet(load: float) -> None:
    """Wait, for some minutes at most, until the machine's load is low."""
    deadline = time.monotonic() + _QUIET_PATIENCE
    while load and os.getloadavg()[0] > load and time.monotonic() < deadline:
        print(f"load {os.getloadavg()[0]:.1f}, waiting for {load:g}", file=sys.stderr, flush=True)
        time.sleep(5)


if __name__ == "__main__":
    sys.exit(main())
