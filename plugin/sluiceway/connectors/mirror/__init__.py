"""MirrorSource: copies topics of another Kafka cluster, as MirrorMaker 2's MirrorSourceConnector does."""
