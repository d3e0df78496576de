"""Runs the parts of a one-machine installation as background processes: the Kafka broker, Airflow, the REST server."""
