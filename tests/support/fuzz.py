"""Runs a test with generated arguments, within a second of CPU time (ten in the slice) and 512 MB of memory for each case.

Hypothesis generates arguments, and each of them is varied some times, which is much faster. `make test` runs a slice. ``CASES``
sets the number of cases of each test (`make test-security`), in rounds with new seeds, because Hypothesis keeps what it has
tried. ``FIRST`` is the number of cases that earlier runs had, so that runs one after the other make a large number without a
gap or a repetition, and ``SEED`` chooses other cases. A table of what ran is printed.
"""

from __future__ import annotations

import functools
import inspect
import logging
import os
import random
import resource
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

FIGURES: list[str] = []
"""Lines for the end of the run: the requests that other tests of `make test-security` made, and the places they searched."""

PASSWORDS = st.lists(st.sampled_from(["hunter2", "12345", *"/?@,;&=#:[]{}%"]), min_size=1, max_size=6).map("".join)
"""Passwords with the characters that separate the parts of URLs."""

RAN: dict[str, tuple[int, float]] = {}
"""The cases that ran and their seconds of CPU time, by test."""

CASES = int(os.environ.get("CASES", "0"))
FIRST = int(os.environ.get("FIRST", "0"))
SEED = int(os.environ.get("SEED", "0"))
_SLICE = 4
_ROUND = 1_000
_VARIATIONS = 50
_SECONDS = 1.0 if CASES else 10.0  # looking for garbage in a process with all unit tests takes a second, too
_BYTES = 512 * 1024 * 1024
_TEXTS = (
    "",
    "\x00",
    "..",
    "/",
    "%2e",
    "${env:HOME}",
    "{{ 1 }}",
    "\ud83d",
    "é",
    "'",
    '"',
    "\\",
    "9" * 400,
    "-1",
    "1e999",
    "NaN",
    "null",
)
_NUMBERS = (0, -1, 1, 127, 128, 255, 2**31 - 1, 2**31, -(2**63), 2**63, 10**30)
_BYTES_OF_LENGTHS = (b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x0f", b"\x80" * 9 + b"\x01", b"\xff" * 10)


class HangError(BaseException):
    """A case took more CPU time than it may. No handler of errors takes it for one of its own."""


@contextmanager
def refused_cleanly(*errors: type[Exception]) -> Iterator[None]:
    """Let a block end with one of these errors, unless its cause is a lack of memory."""
    try:
        yield
    except errors as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, MemoryError):
                raise cause from None
            cause = cause.__cause__ or cause.__context__


def of_this_run(share: float = 1, size: int = 1) -> range:
    """Return the numbers of this run's groups of ``size`` cases, if a test has ``share`` of the cases."""
    return range(-(-int(FIRST * share) // size), -(-int((FIRST + CASES) * share) // size))


def ran(test: str, cases: int, seconds: float) -> None:
    """Note cases that ran, and their seconds of CPU time."""
    before = RAN.get(test, (0, 0.0))
    RAN[test] = (before[0] + cases, before[1] + seconds)


def table() -> list[str]:
    """Return the lines of a table of what ran, none without ``CASES``."""
    if not RAN:
        return []
    rows = [*sorted(RAN.items()), ("all", (sum(cases for cases, _ in RAN.values()), sum(took for _, took in RAN.values())))]
    head = f"cases {FIRST:,} to {FIRST + CASES:,} of each target, seed {SEED}"
    return [head, "      cases   CPU s  test", *(f"{cases:>11,} {took:>7,.0f}  {test}" for test, (cases, took) in rows)]


def fuzz(
    varied: str, *, share: float = 1, **strategies: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test that takes generated arguments, of which one is ``varied``; ``share`` of CASES is its number of cases."""
    generated = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("dice", *strategies)])

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def examples(numbers: range, fixed: dict[str, Any]) -> int:
            """Run examples with these numbers. Return how many cases they had."""
            count = 0

            def case(dice: random.Random, **arguments: Any) -> None:
                nonlocal count
                value = arguments[varied]
                with memory(), _no_log(), processor_time() as restart:
                    for repeat in range(_VARIATIONS):
                        given_ones = arguments if not repeat else {**arguments, varied: vary(dice, value)}
                        restart()
                        test(**fixed, **given_ones)
                count += _VARIATIONS

            case.__signature__ = generated  # type: ignore[attr-defined] # Hypothesis finds arguments by name
            chosen = settings(max_examples=len(numbers), suppress_health_check=list(HealthCheck), database=None)
            dice = st.integers(0, 2**32).map(random.Random)
            seed(f"{SEED} {numbers.start}")(chosen(given(dice=dice, **strategies)(case)))()
            return count

        def fuzzed(**fixed: Any) -> None:
            numbers, began = of_this_run(share, _VARIATIONS) if CASES else range(_SLICE), time.process_time()
            count = sum(examples(numbers[at : at + _ROUND], fixed) for at in range(0, len(numbers), _ROUND))
            if CASES:
                ran(test.__name__, count, time.process_time() - began)

        fuzzed.__name__, fuzzed.__doc__, fuzzed.__module__ = test.__name__, test.__doc__, test.__module__
        fixtures = [each for name, each in inspect.signature(test).parameters.items() if name not in strategies]
        fuzzed.__signature__ = inspect.Signature(fixtures)  # type: ignore[attr-defined] # pytest's
        return fuzzed

    return decorate


def vary(dice: random.Random, value: Any) -> Any:
    """Return a text, bytes, a number, or JSON's values with a few changes."""
    if isinstance(value, (str, bytes)):
        for _ in range(dice.choice((1, 1, 2, 4))):
            value = _spliced(dice, value)
        return value
    if isinstance(value, dict) and value:
        key = dice.choice(list(value))
        if dice.random() < 0.15:
            return {vary(dice, each) if each == key else each: content for each, content in value.items()}
        return {**value, key: vary(dice, value[key])}
    if isinstance(value, list) and value:
        at = dice.randrange(len(value))
        return [*value[:at], *[vary(dice, value[at])] * dice.choice((0, 1, 1, 1, 2)), *value[at + 1 :]]
    if isinstance(value, (int, float)) and dice.random() < 0.5:
        return value + dice.choice(_NUMBERS)
    return dice.choice((*_TEXTS, *_NUMBERS, None, True, [], {}, [[]], {"": None}))


def _spliced(dice: random.Random, value: Any) -> Any:
    """Return a text or bytes, of which a piece is removed, repeated, moved, or replaced."""
    first, second = sorted((dice.randint(0, len(value)), dice.randint(0, len(value))))
    second = min(second, first + dice.choice((0, 1, 2, 8, 64)))
    piece = value[first:second]
    kind = dice.randrange(5)
    if kind == 0:
        piece = piece[:0]
    elif kind == 1:
        piece *= dice.choice((2, 3, 100))
    elif kind == 2:
        other = dice.randint(0, len(value))
        piece = value[other : other + 8]
    elif isinstance(value, str):
        piece = dice.choice(_TEXTS) if kind == 3 else chr(dice.randrange(0x110000))
    else:
        piece = dice.choice(_BYTES_OF_LENGTHS) if kind == 3 else bytes([dice.randrange(256)])
    return value[:first] + piece + value[second:]


@contextmanager
def processor_time(seconds: float = _SECONDS) -> Iterator[Callable[[], object]]:
    """Raise HangError in a block that takes more CPU time, counted again from each call of what is yielded.

    For the main thread.
    """

    def ended(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, ended)
    restart = functools.partial(signal.setitimer, signal.ITIMER_VIRTUAL, seconds)
    restart()
    try:
        yield restart
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


@contextmanager
def _no_log() -> Iterator[None]:
    """Log nothing in a block: xdist cannot send half a surrogate pair."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


@contextmanager
def memory() -> Iterator[None]:
    """Raise MemoryError in a block that takes more memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + _BYTES, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
