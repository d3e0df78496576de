"""Masks the literal secrets of the config that a DAG passes to an operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sluiceway.config.connector_files import to_text
from sluiceway.provider.masks import mask_config
from sluiceway.provider.templated import Templated

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


class MaskedConfig(Templated):
    """An operator with the templated field ``config``. Airflow stores and shows rendered fields, with what is masked hidden."""

    config: Mapping[str, Any] | str | None

    def render_template(
        self, content: Any, context: Context, jinja_env: jinja2.Environment | None = None, seen_oids: set[int] | None = None
    ) -> Any:
        rendered = super().render_template(content, context, jinja_env, seen_oids)
        if content is self.config and isinstance(rendered, Mapping):
            mask_config({str(key): to_text(value) for key, value in rendered.items() if value is not None})
        return rendered
