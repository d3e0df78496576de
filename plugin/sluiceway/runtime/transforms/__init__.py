"""Applies a connector's chain of transforms and predicates to batches of records."""
