"""Runs sink tasks: consume, convert, transform, put, commit offsets."""
