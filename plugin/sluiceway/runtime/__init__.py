"""Moves records: source loop and sink loop, the chain, offsets. Knows neither Spark nor Airflow."""
