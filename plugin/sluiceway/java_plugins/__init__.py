"""Runs Kafka Connect's Java plugins in a Java process beside the Python process that uses them."""
