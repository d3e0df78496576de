"""Creates an Airflow DAG for each connector in the config topic."""
