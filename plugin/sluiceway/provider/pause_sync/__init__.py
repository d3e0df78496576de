"""Keeps DAGs' paused flags and connectors' target states in sync. Runs in the API server."""
