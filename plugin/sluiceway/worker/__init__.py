"""Hosts connectors and their tasks (Kafka Connect's Worker). Knows nothing of PySpark."""
