"""How answers are printed: as a table for people, as JSON or YAML for programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

FORMATS = ("table", "json", "yaml")

Rows = Sequence[Sequence[str]]


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the option that says how to print."""
    parser.add_argument("-o", "--output", choices=FORMATS, default="table", help="how to print (default: table)")


def show(document: Any, rows: Rows, output: str) -> None:
    """Print a document, or the table that stands for it."""
    print(table(rows) if output == "table" else text(document, output))


def text(document: Any, output: str) -> str:
    """Return a document as JSON or YAML."""
    if output == "json":
        return json.dumps(document, indent=2, ensure_ascii=False)
    import yaml  # type: ignore[import-untyped]

    dumped: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=4096)
    return dumped.rstrip("\n")


def table(rows: Rows) -> str:
    """Return rows as columns, the first row being the head."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)


def counts(status: dict[str, Any]) -> str:
    """Return a connector's tasks by state: ``2 RUNNING, 1 FAILED``."""
    states = [task["state"] for task in status["tasks"]]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)) or "-"
