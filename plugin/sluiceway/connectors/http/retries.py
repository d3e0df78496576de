"""Defines the keys of repeated requests, which the source and the sink share, and their options. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sluiceway.config.definition import ConfigKey, ConfigValue, Importance, Type
from sluiceway.config.validators import OrNull, Range
from sluiceway.connectors.keys import unreachable_key, unreachable_seconds, whole

RETRIES, BACKOFF, LONGEST_BACKOFF = "max.retries", "retry.backoff.ms", "retry.backoff.max.ms"


def retry_keys(group: str, backoff: int) -> list[ConfigKey]:
    """Return the keys of a group. ``backoff`` is the default of the first pause, in milliseconds."""
    return [
        ConfigKey(
            name=RETRIES,
            type=Type.INT,
            default=None,
            validator=OrNull(Range(0, 2**31 - 1)),
            importance=Importance.MEDIUM,
            group=group,
            doc="How often in a row requests may be repeated, without one that is taken, before the task fails. By default only "
            "sluiceway.unreachable.timeout.ms limits that.",
        ),
        whole(BACKOFF, backoff, 0, group, "Milliseconds before the first repetition. Each pause is twice as long as the last."),
        whole(LONGEST_BACKOFF, 60_000, 1, group, "The most milliseconds between two attempts, unless Retry-After asks more."),
        unreachable_key(group, "a server"),
    ]


@dataclass(frozen=True, slots=True)
class RetryOptions:
    """The most repetitions in a row, and the pauses between them in seconds; None for no limit."""

    most: int | None
    backoff: float
    longest_backoff: float
    unreachable: float | None


def retry_options(values: Mapping[str, ConfigValue]) -> RetryOptions:
    """Return the options of parsed values."""
    most = values[RETRIES]
    return RetryOptions(
        most=None if most is None else int(str(most)),
        backoff=int(str(values[BACKOFF])) / 1000,
        longest_backoff=int(str(values[LONGEST_BACKOFF])) / 1000,
        unreachable=unreachable_seconds(values),
    )
