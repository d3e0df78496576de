"""Measures the progress of connectors: offsets, lag, and dead letter queue record counts."""
