"""The predicates that Connect brings, one module each."""
