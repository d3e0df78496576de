"""Injects faults for real and says what came of them."""
