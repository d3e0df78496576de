"""Converters that keep their schemas in a Schema Registry, in its wire format."""
