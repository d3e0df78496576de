"""Databases as sources and sinks: PostgreSQL, MySQL, MariaDB and SQLite through SQLAlchemy and Python drivers, no Java."""
