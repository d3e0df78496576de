"""Airflow's side: the plugin with REST and mirror, the DAG bundle, what operators and sensors share."""
