"""Airflow sensors on the state of connectors."""
