"""Compares Sluiceway with Kafka Connect 4.3.0 on generated vectors (needs Java; not run by the tests)."""
