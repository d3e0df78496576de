"""Metrics under the names of Kafka Connect's JMX beans: counted in tasks, sent to the driver, served as Prometheus text."""
