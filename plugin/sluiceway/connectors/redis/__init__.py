"""Connectors for Redis: streams read by entry id or by consumer group, and a sink for streams, strings, hashes and lists."""

from sluiceway.connectors.redis.group_source import RedisGroupSourceConnector
from sluiceway.connectors.redis.sink import RedisSinkConnector
from sluiceway.connectors.redis.stream_source import RedisStreamSourceConnector

__all__ = ["RedisGroupSourceConnector", "RedisSinkConnector", "RedisStreamSourceConnector"]
