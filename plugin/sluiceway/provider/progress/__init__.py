"""Measures how far connectors are: offsets, lag, dead letter queue counts."""
