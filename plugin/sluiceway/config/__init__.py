"""Defines, reads and validates configuration.

Contains ``ConfigDef`` with its validators, the keys of workers and connectors, readers of .properties, JSON and YAML files, and
config providers.
"""
