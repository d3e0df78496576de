"""Reads and writes ``RESULTS.md``, the table of what became of each mutant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from mutants.catalog import ALL, CATALOG
from mutants.mutant import Mutant
from mutants.verdicts import NOTICED, Verdict

TABLE = Path(__file__).with_name("RESULTS.md")
_CELLS = re.compile(r"(?<!\\)\|")
_HEAD = """# Mutants

What `make mutants` found: each mutant breaks the product in one place, and a test of `make test` must fail. The seconds are those
until the first failure, Python's start included.

"""


def read() -> dict[str, Verdict]:
    """Return the verdicts of the table by mutant, none if there is no table."""
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    rows = [[cell.strip().replace("\\|", "|") for cell in _CELLS.split(line)[1:-1]] for line in lines if line.startswith("| `")]
    verdicts = [
        Verdict(id_.strip("`"), result, by.strip("`"), float(seconds)) for id_, _place, _breaks, result, by, seconds in rows
    ]
    return {verdict.id: verdict for verdict in verdicts}


def write(verdicts: Mapping[str, Verdict]) -> None:
    """Write the table: the summary, then a section for each category."""
    left = sum(mutant.id not in verdicts for mutant in ALL)
    text = [_HEAD, summary(verdicts.values()), f" {left} have not been run yet." if left else "", "\n"]
    for category, mutants in CATALOG.items():
        known = [(mutant, verdicts[mutant.id]) for mutant in mutants if mutant.id in verdicts]
        text += [f"\n## {category}\n\n| mutant | place | what is broken | result | noticed by | seconds |\n"]
        text += ["|---|---|---|---|---|---:|\n", *(_row(mutant, verdict) for mutant, verdict in known)]
    TABLE.write_text("".join(text), encoding="utf-8")


def summary(verdicts: Iterable[Verdict]) -> str:
    """Return one line with the numbers."""
    judged = list(verdicts)
    noticed = sum(verdict.result == NOTICED for verdict in judged)
    return f"{noticed} of {len(judged)} mutants were noticed ({100 * noticed / max(1, len(judged)):.1f} %)."


def _row(mutant: Mutant, verdict: Verdict) -> str:
    cells = (f"`{mutant.id}`", f"`{mutant.module}`", mutant.breaks, verdict.result, f"`{verdict.by}`", f"{verdict.seconds:.1f}")
    escaped = [" ".join(cell.split()).replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(escaped)} |\n"
