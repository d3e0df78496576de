"""Describes the data sets that connectors read and write: Airflow assets and OpenLineage."""
