"""Prints responses: tables for people, JSON or YAML for programs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

FORMATS = ("table", "json", "yaml")

Rows = Sequence[Sequence[str]]


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the option for the output format."""
    parser.add_argument("-o", "--output", choices=FORMATS, default="table", help="output format (default: table)")


def show(document: Any, rows: Rows, output: str) -> None:
    """Print ``rows`` as a table, or ``document`` as JSON or YAML."""
    print(table(rows) if output == "table" else text(document, output))


def text(document: Any, output: str) -> str:
    """Return a document as JSON or YAML."""
    if output == "json":
        return json.dumps(document, indent=2, ensure_ascii=False)
    import yaml

    dumped: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=4096)
    return dumped.rstrip("\n")


def table(rows: Rows) -> str:
    """Return rows as columns without borders. The first row is the header. Cells are never cut or wrapped."""
    from rich.cells import cell_len
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    head, *body = rows
    grid = Table(*head, box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style=None)
    for row in body:
        grid.add_row(*map(Text, row))
    width = sum(2 + max(cell_len(row[column]) for row in rows) for column in range(len(head)))
    console = Console(width=width, color_system=None)
    with console.capture() as captured:
        console.print(grid)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())


def counts(status: Mapping[str, Any]) -> str:
    """Return the number of a connector's tasks by state, such as ``2 RUNNING (1 waiting), 1 FAILED``."""
    states, waiting = [task["state"] for task in status["tasks"]], len(waits(status))
    number = {state: f"{states.count(state)} {state}" for state in dict.fromkeys(states)}
    if waiting:
        number["RUNNING"] += f" ({waiting} waiting)"
    return ", ".join(number.values()) or "-"


def waits(status: Mapping[str, Any]) -> list[str]:
    """Return what the running tasks of a connector wait for: the only text that a status has beside the state RUNNING."""
    return [task["trace"] for task in status["tasks"] if task["state"] == "RUNNING" and task.get("trace")]
