"""Submits a connector's Spark driver, watches it, and decides what the task does after its end. Runs in the Airflow task."""
