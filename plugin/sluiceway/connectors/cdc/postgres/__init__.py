"""Change data capture from PostgreSQL, by its output plugin pgoutput."""
