"""JdbcSink: writes topics into tables."""
