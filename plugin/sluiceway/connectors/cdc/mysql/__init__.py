"""MariaDB and MySQL source connectors that read the binary log."""
