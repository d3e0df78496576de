"""Example DAGs. Put a file into your DAGs folder that imports one: ``from sluiceway.dags.example_file_to_file import dag``."""
