"""Example DAGs written by hand with the operators."""
