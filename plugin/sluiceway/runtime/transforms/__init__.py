"""Applies a connector's transforms and predicates to batches of records."""
