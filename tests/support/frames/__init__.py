"""Sinks to files and tables that run in a real Spark application whose processes are killed."""
