"""The connectors' page in Airflow: static files, the JSON that they ask for, and what is measured for it. API server only."""
