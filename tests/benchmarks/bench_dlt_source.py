"""Rows per second of CPU of DltSource, beside a pipeline of dlt with a destination that drops all.

Counted for both: the processor time of all their processes, without what they take to start, which a run without rows has. For
DltSource it goes up to the columns that the runtime encodes, with the process of the reader and the pipe between them; for the
pipeline, up to the calls of the destination. Both have the same rows: dicts of seven fields and a list, and pages of Arrow.

Run: python tests/benchmarks/bench_dlt_source.py [--rows N] [--rounds N]
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.dlt_task import config_of, running

_PEER = """
import sys
import dlt
from support.dlt_sources import measured

rows, arrow = int(sys.argv[1]), sys.argv[2] == "arrow"

@dlt.destination(batch_size=10_000, loader_file_format="parquet" if arrow else "typed-jsonl", name="nowhere")
def nowhere(items, table):
    pass

dlt.pipeline("bench", destination=nowhere, pipelines_dir=sys.argv[3]).run(measured(rows, arrow))
"""


def main() -> None:
    options = _parser().parse_args()
    _source(0, "dicts")  # what is compiled once
    for kind in ("dicts", "arrow"):
        start, peer_start = _source(0, kind), _peer(0, kind)
        ratios = []
        for _ in range(options.rounds):
            own, peer = _source(options.rows, kind) - start, _peer(options.rows, kind) - peer_start
            ratios.append(peer / own)
            rates = f"DltSource {options.rows / own:,.0f} rows/CPU s, dlt's pipeline {options.rows / peer:,.0f}"
            print(f"{kind}: {rates}; start {start:.1f} and {peer_start:.1f} CPU s", flush=True)
        print(f"{options.rows:,} rows as {kind}: DltSource has {statistics.median(ratios):.1f} times the rate of dlt's pipeline")


def _source(rows: int, kind: str) -> float:
    """Return the processor seconds of a run of DltSource, with those of its reader."""
    began, found = _cpu(), 0
    with running(config_of("measured", {"rows": rows, "arrow": kind == "arrow"})) as task:
        while not task.ended:
            polled = task.poll_columns()
            found += len(polled or ())
    if found != rows:
        raise SystemExit(f"{found} rows instead of {rows}")
    return _cpu() - began


def _peer(rows: int, kind: str) -> float:
    began = _cpu()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
        "RUNTIME__DLTHUB_TELEMETRY": "false",
        "PROVIDERS__ENABLE_AIRFLOW_SECRETS": "false",
    }
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", _PEER, str(rows), kind, folder], env=environment, check=True)
    return _cpu() - began


def _cpu() -> float:
    """Return the processor seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    return parser


if __name__ == "__main__":
    main()
