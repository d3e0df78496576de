"""Shows moves of connectors while they go on, and what came of them."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sluiceway.cli.output import Rows

if TYPE_CHECKING:
    from sluiceway.cli.migration import Move, Offsets

HEAD = ("NAME", "RESULT", "STATE", "STANDSTILL", "OFFSETS BEFORE", "OFFSETS AFTER")
_LONGEST_OFFSETS = 40


class Progress:
    """Says how far moves are: a line for each step, or on a terminal one line that changes. Thread-safe.

    Args:
        total: the number of connectors that move.
        say: prints a line.
        rewrite: shows a text as the last line of a terminal; None without a terminal.
    """

    def __init__(self, total: int, say: Callable[[str], None], rewrite: Callable[[str], None] | None) -> None:
        self._total = total
        self._say = say
        self._rewrite = rewrite
        self._moves: dict[str, Move] = {}
        self._lock = threading.Lock()

    def changed(self, move: Move) -> None:
        with self._lock:
            self._moves[move.name] = move
            if self._rewrite is not None:
                self._rewrite(self._line())
            elif move.error is None and move.step is not None:
                self._say(f"{move.name}: {move.step.value}{f', {move.state}' if move.state else ''}")
            if move.error is not None:
                self._say(f"{move.name}: not moved. {move.error}")

    def _line(self) -> str:
        done = sum(move.done or move.error is not None for move in self._moves.values())
        steps = Counter(move.step.value for move in self._moves.values() if move.step and not move.done and not move.error)
        now = ", ".join(f"{count} {step}" for step, count in steps.items())
        return f"{done} of {self._total} connectors done{f'; {now}' if now else ''}"


def summary_rows(moves: Sequence[Move]) -> Rows:
    return [HEAD, *(_row(move) for move in moves)]


def summary_json(moves: Sequence[Move], seconds: float) -> dict[str, Any]:
    return {"seconds": round(seconds, 1), "connectors": [_json(move) for move in moves]}


def _result(move: Move) -> str:
    if move.error is not None:
        return "not moved"
    return "moved" if move.here else "was moved"


def _row(move: Move) -> tuple[str, ...]:
    standstill = "-" if move.standstill is None else f"{move.standstill:.1f} s"
    return move.name, _result(move), move.state or "-", standstill, _offsets_text(move.before), _offsets_text(move.after)


def _json(move: Move) -> dict[str, Any]:
    return {
        "name": move.name,
        "result": _result(move),
        "state": move.state,
        "standstill_seconds": None if move.standstill is None else round(move.standstill, 2),
        "offsets_before": move.before,
        "offsets_after": move.after,
        "error": move.error,
    }


def _offsets_text(offsets: Offsets | None) -> str:
    """Return offsets in a few words: that of a single partition, or the sum of those of a sink."""
    if not offsets:
        return "-" if offsets is None else "none"
    if len(offsets) == 1:
        text = json.dumps(offsets[0]["offset"], ensure_ascii=False)
        return text if len(text) <= _LONGEST_OFFSETS else f"{text[:_LONGEST_OFFSETS]}..."
    numbers = [each["offset"].get("kafka_offset") for each in offsets if isinstance(each["offset"], dict)]
    whole = [number for number in numbers if isinstance(number, int)]
    if len(whole) == len(offsets):
        return f"{sum(whole)} in {len(offsets)} partitions"
    return f"{len(offsets)} partitions"
