"""Handles records that fail: retries, tolerance, dead letter queue, errant record reporter (KIP-298, KIP-610)."""
