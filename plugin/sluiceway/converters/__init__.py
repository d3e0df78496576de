"""Connect's converters, by the same names."""
