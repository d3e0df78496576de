"""Masks the literal secrets of the config that a DAG passes to an operator."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from sluiceway.config.connector_files import to_text
from sluiceway.errors import ConnectError
from sluiceway.herder.plugin_path import use_plugin_path
from sluiceway.provider.masks import mask_config
from sluiceway.provider.settings import read_settings
from sluiceway.provider.templated import Templated

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


class MaskedConfig(Templated):
    """An operator with the templated field ``config``. Airflow stores and shows rendered fields, with what is masked hidden."""

    config: Mapping[str, Any] | str | None
    worker_properties: str | None

    def render_template(
        self, content: Any, context: Context, jinja_env: jinja2.Environment | None = None, seen_oids: set[int] | None = None
    ) -> Any:
        rendered = super().render_template(content, context, jinja_env, seen_oids)
        if content is self.config and isinstance(rendered, Mapping):
            with suppress(ConnectError):  # the task fails with it in execute, which says what is wrong
                use_plugin_path(read_settings().worker(self.worker_properties).raw)
            mask_config({str(key): to_text(value) for key, value in rendered.items() if value is not None})
        return rendered
