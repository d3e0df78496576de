"""Runs the targets that prove more than `make test` has time for, one after the other, and keeps their last figures.

Run: ``make proof``, or ``make proof ONLY=faults,test-cdc``. It takes hours. Each target's output goes to build/proof/TARGET.log,
and the table tests/PROOF.md gets its row: when, at which commit, how long, and pytest's last line or the target's own.
"""

from __future__ import annotations

import argparse
import datetime
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "tests" / "PROOF.md"
TARGETS = (
    "test-airflow",
    "test-airflow-versions",
    "test-cdc",
    "test-cdc-keys",
    "test-cdc-kills",
    "test-clusters",
    "test-columns",
    "test-executors",
    "test-frames",
    "test-lineage",
    "test-matrix",
    "test-metrics",
    "test-own-airflow",
    "test-page",
    "test-plugins",
    "test-plugins-cdc",
    "test-plugins-kills",
    "test-preview",
    "test-security",
    "test-stores",
    "test-long",
    "faults",
    "mutants",
    "bench-cdc",
    "bench-migrate",
    "bench",
)
_HEADER = """\
# Proof

The last figures of the targets that `make proof` runs, and that `make test` has no time for.

| target | day | commit | minutes | result |
|---|---|---|---|---|
"""
_SUMMARY = re.compile(r"^=* ?(\d+ (?:passed|failed).*? in [\d.]+s.*?) ?=*$")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of targets, separated by commas; default: all")
    chosen = parser.parse_args().only
    wanted = chosen.split(",") if chosen else list(TARGETS)
    if unknown := sorted(set(wanted) - set(TARGETS)):
        parser.error(f"unknown targets: {', '.join(unknown)}; known: {', '.join(TARGETS)}")
    codes = [run(target) for target in wanted]
    return max(codes)


def run(target: str) -> int:
    """Run a target, write its row, and return its exit code."""
    log = ROOT / "build" / "proof" / f"{target}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"make {target} ... (output: {log})\n")
    began = time.monotonic()
    with log.open("wb") as output:
        code = subprocess.run(["make", target], cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
    minutes = (time.monotonic() - began) / 60
    result = summary(log.read_text(errors="replace"), code)
    sys.stdout.write(f"make {target}: {result}, {minutes:.0f} min\n")
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True)
    today = datetime.datetime.now(datetime.timezone.utc).date()
    TABLE.write_text(with_row(TABLE.read_text(), target, f"{today} | {commit.stdout.strip()} | {minutes:.0f} | {result}"))
    return code


def summary(output: str, code: int) -> str:
    """Return pytest's last lines of a target's output, or its last line; and that it failed."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    found = [match[1] for line in lines if (match := _SUMMARY.match(line))]
    text = "; ".join(found) if found else (lines[-1] if lines else "no output")
    return f"FAILED: {text}" if code else text


def with_row(table: str, target: str, cells: str) -> str:
    """Return the table with a target's row replaced or added; rows are in the order of TARGETS."""
    rows = dict(re.findall(r"^\| ([a-z-]+) \| (.*) \|$", table, re.MULTILINE))
    rows.pop("target", None)
    rows[target] = cells
    return _HEADER + "".join(f"| {name} | {rows[name]} |\n" for name in TARGETS if name in rows)


if __name__ == "__main__":
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    sys.exit(main())
