"""Connect's schemas and values as Arrow types and arrays, for the columnar forms of converters, transforms and tasks."""
