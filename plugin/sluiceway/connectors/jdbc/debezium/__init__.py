"""The JDBC sink under the configuration of Debezium's JDBC sink, change events included."""
