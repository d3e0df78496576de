"""Sluiceway: Kafka Connect for Apache Airflow and Apache Spark.

Importing this package imports neither pyspark nor airflow nor confluent_kafka. Each of them is used by one subpackage only.
"""

__version__ = "1.0.0a1"
