"""Change data capture: connectors that read the transaction logs of databases, with Debezium's configs and records."""
