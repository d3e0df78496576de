"""Serves the connectors' page in Airflow: its static files and the JSON they request. Runs in the API server."""
