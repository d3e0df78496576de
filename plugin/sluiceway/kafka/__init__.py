"""Kafka clients, admin requests, internal-topic logs and writers. The only package that imports confluent_kafka."""
