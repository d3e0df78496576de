"""Runs Kafka Connect's Java plugins from ``plugin.path``. Found without a JVM, run in a JVM child process."""
