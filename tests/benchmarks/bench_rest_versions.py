"""Compares the REST API of two versions: both answer the recorded conversation in turn, in one run.

Each version is a process with the code of its commit and this environment's packages. A round is every recorded request
(``tests/conformance/test_rest.py``) once, each with a cluster of its own in memory. The versions take turns, and change who is
first. Printed are the median CPU time of a request by version, which other work on the machine does not change much, and the
ratios, also of the time that passed; the requests that differ most follow.

Run: python tests/benchmarks/bench_rest_versions.py OLD [NEW] [--rounds 40]

OLD and NEW are commits; NEW is the working tree by default.

Limit: the ratio of the medians over the whole conversation is 1.05.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

LIMIT = 1.05
ROOT = Path(__file__).resolve().parents[2]
MOST = 5  # requests that are printed

# Answers each line of its input with the seconds that passed in each request, and those of CPU time.
ANSWERING = """
import json, logging, sys, time
from conformance import test_rest as recorded

def seconds(exchange):
    connect = recorded.Connect(places=[recorded.PLACE])
    recorded.prepare(connect, exchange)
    began, used = time.perf_counter(), time.process_time()
    recorded.put(connect, exchange)
    return time.perf_counter() - began, time.process_time() - used

logging.disable(logging.CRITICAL)
for _ in sys.stdin:
    print(json.dumps({each["id"]: seconds(each) for each in recorded.EXCHANGES}), flush=True)
"""


class Version:
    """A version of the code that answers the conversation in a process of its own."""

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(folder / each) for each in ("plugin", "tests"))}
        self._process = subprocess.Popen(
            [sys.executable, "-c", ANSWERING],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=folder,
            text=True,
        )
        self.rounds: list[dict[str, tuple[float, float]]] = []

    def answer(self) -> dict[str, tuple[float, float]]:
        """Answer the conversation once; return the seconds of each request, and those of CPU time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found: dict[str, tuple[float, float]] = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        self._process.communicate()

    def medians(self, kind: int) -> dict[str, float]:
        """Return the median milliseconds of each request: those that passed (0), or of CPU time (1)."""
        return {name: 1000 * statistics.median(each[name][kind] for each in self.rounds) for name in self.rounds[0]}


@contextmanager
def _checkout(commit: str | None) -> Iterator[Path]:
    """Return a folder with the files of a commit; that of the working tree without one."""
    if commit is None:
        yield ROOT
        return
    with tempfile.TemporaryDirectory(prefix="rest-version-") as folder:
        archive = subprocess.run(["git", "archive", commit], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", folder], input=archive, check=True)
        yield Path(folder)


def measure(commits: Sequence[str | None], rounds: int) -> list[Version]:
    """Return the versions after these rounds."""
    with ExitStack() as stack:
        versions = [Version(stack.enter_context(_checkout(commit))) for commit in commits]
        for version in versions:
            stack.callback(version.close)
            version.answer()  # imports, and what is made once
        for number in range(rounds):
            for version in versions if number % 2 else versions[::-1]:
                version.rounds.append(version.answer())
        return versions


def report(what: str, old: Mapping[str, float], new: Mapping[str, float]) -> float:
    """Print a comparison. Return the ratio of the medians."""
    before, after = (statistics.median(found[name] for name in old if name in new) for found in (old, new))
    ratios = sorted(((new[name] / old[name], name) for name in old if name in new), reverse=True)
    middle = statistics.median(ratio for ratio, _ in ratios)
    print(f"{what}: median of {len(ratios)} requests {before:.3f} ms, then {after:.3f} ms: ratio {after / before:.3f}")
    print(f"  median of the ratios {middle:.3f}; the most and the least:")
    for ratio, name in (*ratios[:MOST], *ratios[-MOST:]):
        print(f"  {ratio:6.2f}  {old[name]:8.3f} ms  {new[name]:8.3f} ms  {name}")
    return after / before


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old")
    parser.add_argument("new", nargs="?")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    old, new = measure([options.old, options.new], options.rounds)
    report("Time that passed", old.medians(0), new.medians(0))
    return int(report("CPU time", old.medians(1), new.medians(1)) > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
