"""Connectors for everything that Spark reads and writes by name (``spark.read.format``, ``DataFrame.write.format``)."""
