"""Converters, one module each; Connect's names."""
