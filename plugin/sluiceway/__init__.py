"""Sluiceway: Kafka Connect for Apache Airflow and Apache Spark.

Importing this package imports neither pyspark nor airflow nor confluent_kafka. Each of them is used by one subpackage only.
"""

__version__ = "0.1.0"
