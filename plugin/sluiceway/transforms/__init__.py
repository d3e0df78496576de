"""Contains Connect's transforms, one module each."""
