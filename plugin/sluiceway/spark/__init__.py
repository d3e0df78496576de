"""Starts drivers on Spark and runs tasks as Spark jobs. The only package that imports pyspark."""
