"""Starts real clusters from pinned jars: Spark standalone, HDFS and YARN."""
