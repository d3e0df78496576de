"""Airflow hooks and the connection type ``kafka_connect``. Imports nothing: every Airflow process loads this module."""
