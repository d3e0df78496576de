"""Mounts the REST API under Airflow's API server."""
