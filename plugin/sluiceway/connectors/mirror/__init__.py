"""MirrorMaker 2's MirrorSourceConnector: copies topics of another Kafka cluster."""
