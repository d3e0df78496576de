"""Configs, statuses and offsets: byte-exact with Kafka Connect 4.3.0 on its three topics; file and memory ones for standalone."""
