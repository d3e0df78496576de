"""What the table sinks share: the Iceberg sink and the Delta sink differ only in their table store."""
