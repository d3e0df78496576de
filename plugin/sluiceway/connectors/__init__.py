"""Connectors, one folder each."""
