"""Contracts that an author of connectors, converters and transforms has checked by subclassing."""
