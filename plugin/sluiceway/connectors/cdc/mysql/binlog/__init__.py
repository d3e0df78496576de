"""Reads the binary log: connection, events, table maps and rows."""
