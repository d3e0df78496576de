"""Debezium's transforms of change events, with the results and messages of Debezium 3.7."""
