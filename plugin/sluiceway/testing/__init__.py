"""Contracts that an author of connectors, converters and transforms has checked by subclassing, and what unit tests need.

A contract is a class of pytest tests: a subclass named ``Test...`` says which class it is about, and gives a config and samples.
Nothing here needs Kafka, Spark or Airflow. docs/writing-connectors.md has examples.
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
