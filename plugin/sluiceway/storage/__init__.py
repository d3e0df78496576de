"""Stores of configs, statuses and offsets.

On Kafka's three internal topics they read and write the bytes of Kafka Connect 4.3.0. Standalone mode uses memory and a file.
"""
