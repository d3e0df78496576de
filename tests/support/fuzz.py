"""Runs a test with generated arguments, within a second of CPU time (ten in the slice) and 512 MB of memory for each case.

Hypothesis generates arguments, and each of them is varied some times, which is much faster. `make test` runs a slice. ``CASES``
sets the number of cases of each test (`make test-security`), in rounds with new seeds, because Hypothesis keeps what it has
tried; the figures are printed.
"""

from __future__ import annotations

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
"""What ran, for the end of the run: also what other tests of `make test-security` asked and searched."""

CASES = int(os.environ.get("CASES", "0"))
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


def fuzz(
    varied: str, *, share: float = 1, **strategies: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a test that takes generated arguments, of which one is ``varied``; ``share`` of CASES is its number of cases."""
    generated = inspect.Signature([inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("dice", *strategies)])

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        def examples(count: int, number: int, fixed: dict[str, Any]) -> None:
            def case(dice: random.Random, **arguments: Any) -> None:
                with memory(), _no_log():
                    for repeat in range(_VARIATIONS):
                        value = arguments[varied]
                        given_ones = arguments if not repeat else {**arguments, varied: vary(dice, value)}
                        with processor_time():
                            test(**fixed, **given_ones)

            case.__signature__ = generated  # type: ignore[attr-defined] # Hypothesis finds arguments by name
            chosen = settings(max_examples=count, suppress_health_check=list(HealthCheck), database=None)
            dice = st.integers(0, 2**32).map(random.Random)
            seed(number)(chosen(given(dice=dice, **strategies)(case)))()

        def fuzzed(**fixed: Any) -> None:
            if not CASES:
                examples(_SLICE, 0, fixed)
                return
            began, wanted = time.monotonic(), -(-int(CASES * share) // _VARIATIONS)
            for number in range(-(-wanted // _ROUND)):
                examples(min(_ROUND, wanted - number * _ROUND), number, fixed)
            took = time.monotonic() - began
            what = ", ".join([test.__name__, *map(str, fixed.values())])
            FIGURES.append(f"{wanted * _VARIATIONS:>11,} cases in {took:5,.0f} s: {what}")

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
def processor_time(seconds: float = _SECONDS) -> Iterator[None]:
    """Raise HangError in a block that takes more CPU time. For the main thread."""

    def ended(_number: int, _frame: FrameType | None) -> None:
        raise HangError(f"more than {seconds:g} s of CPU time")

    before = signal.signal(signal.SIGVTALRM, ended)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
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
