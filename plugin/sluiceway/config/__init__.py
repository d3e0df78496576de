"""Configuration: ConfigDef and validators, worker and connector keys, .properties and JSON files. No I/O but reading files."""
