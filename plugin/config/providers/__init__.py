"""Config providers: what ``${provider:path:key}`` in a config is replaced by."""
