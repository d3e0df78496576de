"""Example DAGs. Put a file into your DAGs folder that imports one: ``from sluiceway.dags.example_file_to_file import dag``.

================================  ===========================================================================
``example_file_to_file``          a source and a sink that run until the DAG is paused
``example_landing_to_files``      each day's landed file into a topic, and from there into a file of that day
``example_sensor_gate``           a pipeline that waits until a topic has new records
``example_beside_generated``      runs the generated DAG of a connector as one of its steps
``example_database_to_topics``    the new rows of all tables of a database into topics, every night
``example_topics_to_database``    tables of a database kept in step with topics, until the DAG is paused
================================  ===========================================================================
"""
