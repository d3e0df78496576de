"""Sluiceway: Kafka Connect for Apache Airflow and Apache Spark.

Importing this package imports none of pyspark, airflow and confluent_kafka; each has one part of the package that owns it.
"""

__version__ = "0.1.0"
