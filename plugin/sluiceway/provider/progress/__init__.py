"""Measures the progress of connectors: offsets, lag, and DLQ record counts."""
