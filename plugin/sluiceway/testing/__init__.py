"""Test contracts and helpers for authors of connectors, converters and transforms.

A contract is a class of pytest tests. A subclass named ``Test...`` sets the class under test and provides a config and samples.
Nothing here needs Kafka, Spark or Airflow. See docs/how-to/write-connectors.md for examples.
"""

from sluiceway.testing.checks import ContractError
from sluiceway.testing.contexts import MemoryConnectorContext, MemorySinkContext, MemorySourceContext
from sluiceway.testing.converter import ConverterContract
from sluiceway.testing.offsets import MemoryOffsets
from sluiceway.testing.predicate import PredicateContract
from sluiceway.testing.running import SinkRun, run_sink, run_source, run_transform
from sluiceway.testing.sink import SinkConnectorContract
from sluiceway.testing.source import SourceConnectorContract
from sluiceway.testing.transform import TransformContract

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
