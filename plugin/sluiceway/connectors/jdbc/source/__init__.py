"""JdbcSource: reads tables and queries into topics."""
