"""Kafka Connect's REST API on top of the herder: the app, a standalone server, and a client."""
