"""A real OpenSearch node for tests."""

from support.search.server import SearchServer

__all__ = ["SearchServer"]
