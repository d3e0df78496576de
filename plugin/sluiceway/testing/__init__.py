"""Test contracts and helpers for authors of connectors, converters and transforms.

A contract is a class of pytest tests. A subclass named ``Test...`` sets the class under test and provides a config and samples.
Nothing here needs Kafka, Spark or Airflow. See docs/how-to/write-connectors.md for examples.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sluiceway.runtime.memory import MemoryConnectorContext, MemoryOffsets, MemorySinkContext, MemorySourceContext
from sluiceway.testing.checks import ContractError
from sluiceway.testing.converter import ConverterContract
from sluiceway.testing.predicate import PredicateContract
from sluiceway.testing.running import SinkRun, run_sink, run_source, run_transform
from sluiceway.testing.transform import TransformContract

if TYPE_CHECKING:
    from sluiceway.testing.sink import SinkConnectorContract
    from sluiceway.testing.source import SourceConnectorContract

# Need pytest, which an environment that only uses the contexts, for the format ``sluiceway``, does not have.
_CONTRACTS = {"SinkConnectorContract": "sluiceway.testing.sink", "SourceConnectorContract": "sluiceway.testing.source"}

__all__ = [
    "ContractError",
    "ConverterContract",
    "MemoryConnectorContext",
    "MemoryOffsets",
    "MemorySinkContext",
    "MemorySourceContext",
    "PredicateContract",
    "SinkConnectorContract",
    "SinkRun",
    "SourceConnectorContract",
    "TransformContract",
    "run_sink",
    "run_source",
    "run_transform",
]


def __getattr__(name: str) -> Any:
    if name in _CONTRACTS:
        return getattr(importlib.import_module(_CONTRACTS[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
