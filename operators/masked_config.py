"""Masks the literal secrets of the config that a DAG passes to an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator

from sluiceway.config.connector_files import to_text
from sluiceway.provider.masks import mask_config

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class MaskedConfig(BaseOperator):
    """An operator with the templated field ``config``. Airflow stores and shows rendered fields, with what is masked hidden."""

    config: Mapping[str, Any] | str | None

    def render_template_fields(self, context: Context, jinja_env: Any = None) -> None:
        super().render_template_fields(context, jinja_env)
        if isinstance(self.config, Mapping):
            mask_config({str(key): to_text(value) for key, value in self.config.items() if value is not None})
