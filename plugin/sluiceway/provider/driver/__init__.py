"""Submits a connector's Spark driver, watches it, and decides what its end means. Runs in the Airflow task."""
