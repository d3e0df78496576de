"""Kafka Connect's REST API over the herder: the app, a server that serves it alone, and a client."""
