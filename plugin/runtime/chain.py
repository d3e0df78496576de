"""The chain of transforms between poll and convert (sources), and between convert and put (sinks)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from sluiceway.api import SinkRecord, SourceRecord
from sluiceway.errors import ConfigError

R = TypeVar("R", SourceRecord, SinkRecord)
Chain = Callable[[Sequence[R]], Sequence[R]]
"""From records to records; one that a predicate or filter dropped is missing from the answer."""


def chain_of(config: Mapping[str, str]) -> Chain[R]:
    """Return the chain that a connector's ``transforms`` describe. Raises ConfigError if there are any: they come later."""
    transforms = config.get("transforms", "").strip()
    if transforms:
        raise ConfigError("transforms", transforms, "transformations are not supported yet; remove them from the config")
    return _unchanged


def _unchanged(records: Sequence[R]) -> Sequence[R]:
    return records
