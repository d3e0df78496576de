"""Connectors for Amazon SQS and Kinesis Data Streams: sources and sinks."""

from sluiceway.connectors.aws.kinesis_sink import KinesisSinkConnector
from sluiceway.connectors.aws.kinesis_source import KinesisSourceConnector
from sluiceway.connectors.aws.sqs_sink import SqsSinkConnector
from sluiceway.connectors.aws.sqs_source import SqsSourceConnector

__all__ = ["KinesisSinkConnector", "KinesisSourceConnector", "SqsSinkConnector", "SqsSourceConnector"]
