"""The transforms that Connect brings, one module each."""
