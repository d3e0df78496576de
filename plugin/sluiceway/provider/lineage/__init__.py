"""Describes the data sets that connectors read and write, as Airflow assets and for OpenLineage."""
