"""The public API for authors of connectors, converters and transforms. Other modules may change at any time."""

from sluiceway.api.columns import (
    Column,
    ColumnBatch,
    ColumnDecoder,
    ColumnEncoder,
    ColumnPredicate,
    ColumnRun,
    ColumnTransform,
    NotColumnar,
    SourceColumns,
)
from sluiceway.api.connector import (
    Connector,
    ConnectorContext,
    ConnectorTransactionBoundaries,
    ExactlyOnceSupport,
    SinkConnector,
    SourceConnector,
    SourceConnectorContext,
)
from sluiceway.api.converter import NULL, Converter, HeaderConverter, SchemaAndValue
from sluiceway.api.data_frames import DataFrameSinkTask, DataFrameSourceTask, Round, Split
from sluiceway.api.offset_target import OffsetTarget, OffsetTargetKind
from sluiceway.api.records import Offset, Partition, SinkRecord, SourceRecord, TopicPartition
from sluiceway.api.task import (
    ErrantRecordReporter,
    OffsetStorageReader,
    SinkTask,
    SinkTaskContext,
    SourceTask,
    SourceTaskContext,
    Task,
    TransactionContext,
)
from sluiceway.api.transform import ConnectRecord, KeyOrValueTransform, Predicate, Resolved, Transform

__all__ = [
    "NULL",
    "Column",
    "ColumnBatch",
    "ColumnDecoder",
    "ColumnEncoder",
    "ColumnPredicate",
    "ColumnRun",
    "ColumnTransform",
    "ConnectRecord",
    "Connector",
    "ConnectorContext",
    "ConnectorTransactionBoundaries",
    "Converter",
    "DataFrameSinkTask",
    "DataFrameSourceTask",
    "ErrantRecordReporter",
    "ExactlyOnceSupport",
    "HeaderConverter",
    "KeyOrValueTransform",
    "NotColumnar",
    "Offset",
    "OffsetStorageReader",
    "OffsetTarget",
    "OffsetTargetKind",
    "Partition",
    "Predicate",
    "Resolved",
    "Round",
    "SchemaAndValue",
    "SinkConnector",
    "SinkRecord",
    "SinkTask",
    "SinkTaskContext",
    "SourceColumns",
    "SourceConnector",
    "SourceConnectorContext",
    "SourceRecord",
    "SourceTask",
    "SourceTaskContext",
    "Split",
    "Task",
    "TopicPartition",
    "TransactionContext",
    "Transform",
]
