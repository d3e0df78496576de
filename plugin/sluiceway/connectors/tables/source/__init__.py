"""The common part of the Iceberg source and the Delta source, which differ only in their tables."""
