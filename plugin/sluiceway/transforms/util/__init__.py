"""Shares code between the transforms; no transform is defined here."""
