"""The Airflow provider: plugin, DAG bundle, hooks, triggers, links, and the shared code of operators and sensors."""
