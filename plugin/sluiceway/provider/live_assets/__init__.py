"""Tells Airflow of what connectors write that run all the time. Runs in the API server."""
