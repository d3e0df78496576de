"""Injects faults into real processes and records the results."""
