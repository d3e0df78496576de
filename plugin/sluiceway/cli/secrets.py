"""Masks secrets in connector configs that the command line prints."""

from __future__ import annotations

from sluiceway.config.masking import is_secret, masked, shown

__all__ = ["is_secret", "masked", "shown"]
