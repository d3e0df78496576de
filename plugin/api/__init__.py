"""What an author of connectors, converters and transforms imports; everything else may change."""

from sluiceway.api.connector import Connector, ConnectorContext, ExactlyOnceSupport, SinkConnector, SourceConnector
from sluiceway.api.converter import NULL, Converter, HeaderConverter, SchemaAndValue
from sluiceway.api.records import Offset, Partition, SinkRecord, SourceRecord
from sluiceway.api.task import (
    ErrantRecordReporter,
    OffsetStorageReader,
    SinkTask,
    SinkTaskContext,
    SourceTask,
    SourceTaskContext,
    Task,
    TopicPartition,
)

__all__ = [
    "NULL",
    "Connector",
    "ConnectorContext",
    "Converter",
    "ErrantRecordReporter",
    "ExactlyOnceSupport",
    "HeaderConverter",
    "Offset",
    "OffsetStorageReader",
    "Partition",
    "SchemaAndValue",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SinkTaskContext",
    "SourceConnector",
    "SourceRecord",
    "SourceTask",
    "SourceTaskContext",
    "Task",
    "TopicPartition",
]
