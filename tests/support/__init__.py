"""What several test modules need: the shared broker, the real Kafka Connect as peer."""
