"""Whatever hides secrets, looks for references, or parses a config takes linear time: a value or a line of a log may be long.

``CASES`` sets the number of generated values (`make test-security`).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress

import pytest

from sluiceway.config.masking import is_secret, shown
from sluiceway.config.parsing import parse_list
from sluiceway.config.variables import Resolver, references
from sluiceway.connectors.iceberg.partitions import partition_transforms
from sluiceway.connectors.jdbc.dialects.sql import without_end
from sluiceway.errors import ConfigError
from sluiceway.herder.discretion import discreet_trace
from sluiceway.java.numbers import parse_double
from sluiceway.provider.driver.submit_command import masked as masked_command
from support.fuzz import CASES, FIRST, SEED, processor_time


def _resolved(text: str) -> None:
    with suppress(ConfigError):  # of a reference that there cannot be
        RESOLVER.resolve({"k": text})


def _number(text: str) -> None:
    with suppress(ValueError):
        parse_double(text)


def _partition(text: str) -> None:
    with suppress(ConfigError):
        partition_transforms([text])


RESOLVER = Resolver.of({"config.providers": "env", "config.providers.env.class": "EnvVarConfigProvider"})
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "value": lambda text: shown("k", text),
    "name": is_secret,
    "command": masked_command,
    "trace": discreet_trace,
    "references": lambda text: list(references({"k": text})),
    "resolution": _resolved,
    "errors": RESOLVER.errors,
    "list": parse_list,
    "number": _number,
    "query": without_end,
    "partition": _partition,
}
PIECES = ["://", ":", "@", "/", "=", ";", "'", '"', "\\", "{", "}", "${", "${env:", "a", "x.y", " ", "\t", "\n", "(", ")"]
PIECES += ["9", ".", ",", "/*", "--", "day("]
PIECES += ["password", "secret", "passw", "jdbc:oracle:a:", "-----BEGIN ", "PRIVATE KEY-----", " at ", "Caused by: ", "://a:b@"]
LENGTH = 100_000
SECONDS = 3.0  # quadratic time is that of billions of steps, and linear time is less than a tenth of a second


def _values() -> list[str]:
    """Return long texts: each piece repeated, and repetitions of some that are chosen at random, with another end."""
    dice = random.Random(f"{SEED} {FIRST}")  # noqa: S311 (test data)
    chosen = [[piece] for piece in PIECES] + [dice.choices(PIECES, k=dice.randint(2, 4)) for _ in range(max(6, CASES // 500))]
    parts = ["".join(each) for each in chosen]
    return [part * (LENGTH // len(part)) + dice.choice(["", "", *PIECES]) for part in parts]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_long_value_takes_no_quadratic_time(name: str) -> None:
    for value in _values():
        with processor_time(SECONDS):
            FUNCTIONS[name](value)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("list", "a" + " " * LENGTH + "b"),
        ("number", "9" * LENGTH + "x"),
        ("number", "0x" + "f" * LENGTH + "x"),
        ("query", "/* " * LENGTH),
        ("partition", "day(" + " " * LENGTH),
    ],
    ids=lambda each: each[:4],
)
def test_a_value_whose_end_does_not_match_takes_no_quadratic_time(name: str, text: str) -> None:
    with processor_time(SECONDS):
        FUNCTIONS[name](text)
