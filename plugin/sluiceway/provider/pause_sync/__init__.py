"""Keeps DAGs' paused flags and connectors' target states in step. Runs in the API server."""
