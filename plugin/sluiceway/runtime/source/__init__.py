"""Runs source tasks: poll, transform, convert, produce, commit offsets."""
