"""JDBC connectors for PostgreSQL, MySQL, MariaDB, SQLite and SQL Server, on SQLAlchemy and Python drivers without Java."""
