"""Connects acme-orders to Kafka, with Sluiceway."""
