"""Example DAGs. To use one, import it in a file in your DAGs folder: ``from sluiceway.dags.example_file_to_file import dag``.

================================  ===========================================================================
``example_file_to_file``          a source and a sink that run until the DAG is paused
``example_landing_to_files``      each day's landed file through a topic to a file of that day
``example_files_to_topic``        delivered CSV files into a topic, and then to another folder
``example_sensor_gate``           a pipeline that waits until a topic has new records
``example_beside_generated``      runs the generated DAG of a connector as one of its steps
``example_database_to_topics``    the new rows of all tables of a database to topics, every night
``example_connectors_from_git``   makes the connectors what the files in a git folder say, every five minutes
``example_topics_to_database``    upserts and deletes from topics into tables, until the DAG is paused
``example_changes_to_topics``     the changes of a PostgreSQL database to topics, until the DAG is paused
``example_changes_to_table``      tables of another database kept in step with a PostgreSQL database's
``example_application_metrics``   the metrics of applications scraped into a topic, until the DAG is paused
``example_watch_progress``        callbacks and a deadline alert for a connector that makes no progress
``example_nightly_changes``       each night the changes of a MariaDB database since the night before
``example_hbase_copy``            the rows of a table of HBase to another table, every hour
``example_search_copy``           new and changed documents of Elasticsearch to OpenSearch, every ten minutes
``example_redis_latest``          a Redis stream to a topic, and its newest entries to hashes, every five minutes
================================  ===========================================================================
"""
