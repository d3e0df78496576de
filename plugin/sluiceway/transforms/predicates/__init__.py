"""Contains Connect's predicates, one module each."""
