"""Masks secrets in the logs of Airflow's tasks, and in what Airflow shows of a task's rendered fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sluiceway.config.masking import literal_secrets
from sluiceway.herder.passwords import password_keys


def mask(secrets: Iterable[object]) -> None:
    """Mask these values as text, other than empty ones."""
    from airflow.sdk.log import mask_secret

    for secret in secrets:
        if secret:
            mask_secret(str(secret))


def mask_config(config: Mapping[str, str]) -> None:
    """Mask the literal secrets of a connector's config."""
    mask(literal_secrets(config, password_keys(config)))
