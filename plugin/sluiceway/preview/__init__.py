"""Shows what a connector would do with its next records, without writing anything."""
