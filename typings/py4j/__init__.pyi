"""Py4J: only the modules that Sluiceway and PySpark's signatures use."""
