"""Runs source and sink tasks: transforms, converters, offsets and error handling. Independent of Spark and Airflow."""
