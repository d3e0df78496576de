"""Runs Kafka, Airflow and the REST API on one machine as background processes, and standalone mode."""
