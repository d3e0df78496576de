"""The connector classes of the file sinks."""

from __future__ import annotations

from sluiceway.connectors.files import connector as files
from sluiceway.connectors.files.connector import FileSinkConnector


class ParquetSinkConnector(FileSinkConnector):
    """Writes the values of its topics to Parquet files, each record exactly once, on local disks, HDFS, S3, GCS or Azure. Values
    need schemas.
    """

    kind = files.PARQUET
    task_class = files.ParquetSinkTask


class OrcSinkConnector(FileSinkConnector):
    """Writes the values of its topics to ORC files, each record exactly once. Values need schemas."""

    kind = files.ORC
    task_class = files.OrcSinkTask


class AvroFileSinkConnector(FileSinkConnector):
    """Writes the values of its topics to Avro container files, each record exactly once. Values need schemas."""

    kind = files.AVRO
    task_class = files.AvroFileSinkTask


class CsvSinkConnector(FileSinkConnector):
    """Writes the values of its topics to CSV files, each record exactly once. Values need schemas without nested fields."""

    kind = files.CSV
    task_class = files.CsvSinkTask


class JsonFileSinkConnector(FileSinkConnector):
    """Writes the values of its topics as lines of JSON, each record exactly once, with and without schemas."""

    kind = files.JSON
    task_class = files.JsonFileSinkTask


class TextSinkConnector(FileSinkConnector):
    """Writes the values of its topics as lines of text, each record exactly once, with and without schemas."""

    kind = files.TEXT
    task_class = files.TextSinkTask


class HdfsSinkConnector(FileSinkConnector):
    """Writes the values of its topics to files in HDFS, each record exactly once; takes the configs of Confluent's HDFS 2 Sink
    Connector.
    """

    kind = files.HDFS
    task_class = files.HdfsSinkTask
    java_class = "io.confluent.connect.hdfs.HdfsSinkConnector"
    java_task_class = "io.confluent.connect.hdfs.HdfsSinkTask"


class Hdfs3SinkConnector(FileSinkConnector):
    """Writes the values of its topics to files in HDFS, each record exactly once; takes the configs of Confluent's HDFS 3 Sink
    Connector.
    """

    kind = files.HDFS
    task_class = files.HdfsSinkTask
    java_class = "io.confluent.connect.hdfs3.Hdfs3SinkConnector"
    java_task_class = "io.confluent.connect.hdfs3.Hdfs3SinkTask"


class S3SinkConnector(FileSinkConnector):
    """Writes the values of its topics to objects in S3, each record exactly once; takes the configs of Confluent's Amazon S3 Sink
    Connector.
    """

    kind = files.S3
    task_class = files.S3SinkTask
    java_class = "io.confluent.connect.s3.S3SinkConnector"
    java_task_class = "io.confluent.connect.s3.S3SinkTask"


class GcsSinkConnector(FileSinkConnector):
    """Writes the values of its topics to objects in Google Cloud Storage, each record exactly once; takes the configs of
    Confluent's GCS Sink Connector.
    """

    kind = files.GCS
    task_class = files.GcsSinkTask
    java_class = "io.confluent.connect.gcs.GcsSinkConnector"
    java_task_class = "io.confluent.connect.gcs.GcsSinkTask"


class AzureBlobStorageSinkConnector(FileSinkConnector):
    """Writes the values of its topics to blobs in Azure, each record exactly once; takes the configs of Confluent's Azure Blob
    Storage Sink Connector.
    """

    kind = files.AZURE
    task_class = files.AzureBlobStorageSinkTask
    java_class = "io.confluent.connect.azure.blob.AzureBlobStorageSinkConnector"
    java_task_class = "io.confluent.connect.azure.blob.AzureBlobStorageSinkTask"
