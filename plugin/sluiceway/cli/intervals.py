"""``sluiceway intervals``: show which intervals the scheduled runs of a connector have moved."""

from __future__ import annotations

import argparse
import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any

from sluiceway import exit_codes
from sluiceway.cli.common import Subparsers, add_names, add_server, client
from sluiceway.cli.output import Rows, add_output, show

_SHOWN = 50


def register(subparsers: Subparsers) -> None:
    parser = subparsers.add_parser("intervals", help="show which intervals scheduled runs of a connector have moved")
    add_names(parser, nargs=None)
    parser.add_argument("--all", action="store_true", help=f"show all of them instead of the latest {_SHOWN}")
    add_output(parser)
    add_server(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    with client(options) as api:
        found = api.intervals(options.name)
    some = found if options.all else found[:_SHOWN]
    show({"name": options.name, "intervals": some}, rows(some), options.output)
    return exit_codes.DONE


def rows(intervals: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the table of intervals, the latest first."""
    head = ("START", "END", "STATE", "RECORDS", "LATE", "ATTEMPT", "RUN")
    return [head, *map(_row, intervals)]


def _row(interval: Mapping[str, Any]) -> tuple[str, ...]:
    least = ">= " if interval["at_least"] else ""
    records, late = (("-" if interval[key] is None else f"{least}{interval[key]}") for key in ("records", "late"))
    runs = interval["runs"]
    state = f"{interval['state']}: {interval['error']}" if "error" in interval else interval["state"]
    if interval["rerun"]:
        state += ", to be moved again"
    times = _time(interval["start"]), _time(interval["end"])
    return (*times, state, records, late, str(interval["attempt"]), runs[-1] if runs else "-")


def _time(milliseconds: int) -> str:
    return dt.datetime.fromtimestamp(milliseconds / 1000).astimezone().isoformat(" ", "seconds")
