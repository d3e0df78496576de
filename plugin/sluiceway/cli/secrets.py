"""Keeps secrets in connectors' configs from being shown by the command line."""

from __future__ import annotations

from sluiceway.config.masking import is_secret, masked, shown

__all__ = ["is_secret", "masked", "shown"]
