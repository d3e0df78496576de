"""Exactly-once sinks for files: Parquet, ORC, Avro, CSV, JSON lines and text, on local disks, HDFS and object stores."""
