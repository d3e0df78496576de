"""Asks the real Kafka Connect 4.3.0 new questions, for comparison (needs Java; the tests do not use it)."""
