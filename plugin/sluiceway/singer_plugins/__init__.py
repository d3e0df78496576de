"""Installs Singer's taps and targets, each apart from all other Python packages, and finds them in ``plugin.path``."""
