"""Connectors that are part of Sluiceway, one package each."""
