"""Partitioners: the folders that records are written to, by Kafka partition, field or time."""

from sluiceway.connectors.files.partitioners.base import DefaultPartitioner, EncodedColumns, Partitioner
from sluiceway.connectors.files.partitioners.field import FieldPartitioner
from sluiceway.connectors.files.partitioners.time_based import TimeBasedPartitioner

__all__ = ["DefaultPartitioner", "EncodedColumns", "FieldPartitioner", "Partitioner", "TimeBasedPartitioner"]
