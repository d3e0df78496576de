"""Registers the files of each topic as an external table in a Hive metastore."""
