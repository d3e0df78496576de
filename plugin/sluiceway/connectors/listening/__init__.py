"""Shares among the sources that listen their keys, the HTTP server, and what they hold until Kafka has it."""
