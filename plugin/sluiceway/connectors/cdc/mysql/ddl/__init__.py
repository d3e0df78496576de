"""Follows DDL statements in a model of the tables.

The model has what the log does not: defaults, comments, declared lengths. A statement that the parser does not understand is no
error: the table is then read again from the server.
"""
