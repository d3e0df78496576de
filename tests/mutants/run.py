"""Runs mutants and writes the table. Ends with 1 if one of them was not noticed.

make mutants                         # all
make mutants ONLY=masks,cdc-window   # some categories or mutants
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue

from mutants import results
from mutants.catalog import chosen
from mutants.mutant import Mutant
from mutants.reach import reaching
from mutants.scratch import Scratch, end_runs, scratch
from mutants.verdicts import NOTICED, Verdict, judge


def verdicts(mutants: Sequence[Mutant], jobs: int) -> Iterator[Verdict]:
    """Judge mutants, ``jobs`` at a time."""
    before = results.read()
    free: SimpleQueue[Scratch] = SimpleQueue()

    def verdict(mutant: Mutant) -> Verdict:
        known = before.get(mutant.id)
        copy = free.get()
        try:
            return judge(copy, mutant, reaching(mutant), known.by if known and known.result == NOTICED else None)
        finally:
            free.put(copy)

    with ExitStack() as stack, ThreadPoolExecutor(jobs) as pool:
        for _ in range(jobs):
            free.put(stack.enter_context(scratch()))
        try:
            yield from pool.map(verdict, mutants)
        except BaseException:  # Ctrl-C
            pool.shutdown(wait=False, cancel_futures=True)
            end_runs()
            raise


def main() -> None:
    """Run the mutants of the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="ids and categories, separated by commas")
    parser.add_argument("--keep-table", action="store_true", help="do not change RESULTS.md")
    parser.add_argument("--jobs", type=int, default=min(2, os.cpu_count() or 1), help="mutants at a time")
    arguments = parser.parse_args()
    mutants = chosen(arguments.only)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    found: list[Verdict] = []
    for number, verdict in enumerate(verdicts(mutants, arguments.jobs), 1):
        print(f"[{number}/{len(mutants)}] {verdict.id}: {verdict.result} {verdict.by} ({verdict.seconds:.1f} s)", flush=True)
        found.append(verdict)
        if not arguments.keep_table:  # at once, so that an interrupted run keeps what it has found
            results.write({**results.read(), verdict.id: verdict})
    left = [verdict for verdict in found if verdict.result != NOTICED]
    print(results.summary(found), *(f"{each.id}: {each.result} {each.by}\n" for each in left), sep="\n")
    sys.exit(bool(left))


if __name__ == "__main__":
    main()
