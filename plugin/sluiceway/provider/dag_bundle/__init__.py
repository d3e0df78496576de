"""Makes an Airflow DAG of each connector in the config topic."""
