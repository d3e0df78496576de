"""The common part of the Iceberg sink and the Delta sink, which differ only in their table store."""
