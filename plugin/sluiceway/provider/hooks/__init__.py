"""Airflow hooks and the connection type ``kafka_connect``. This module imports nothing: every Airflow process loads it."""
