"""The only user of confluent_kafka: clients, admin, compacted-topic logs, error mapping."""
