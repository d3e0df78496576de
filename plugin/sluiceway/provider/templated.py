"""The base of the operators and sensors whose fields are templates: a template with a mistake fails the task at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jinja2
from airflow.sdk import BaseOperator

from sluiceway.provider.compat import AirflowFailException

if TYPE_CHECKING:
    from airflow.sdk import Context


class Templated(BaseOperator):
    """Fails the task without its retries if a template cannot be rendered. A template's file that is missing may still arrive."""

    def render_template(
        self, content: Any, context: Context, jinja_env: jinja2.Environment | None = None, seen_oids: set[int] | None = None
    ) -> Any:
        # Instead of render_template_fields, which Airflow does not call for a mapped task.
        try:
            return super().render_template(content, context, jinja_env, seen_oids)
        except jinja2.TemplateNotFound:
            raise
        except jinja2.TemplateError as error:
            raise AirflowFailException(
                f"Task {self.task_id}: a template in its arguments cannot be rendered: {error}. Correct it in the DAG. "
                "Airflow names the field in the log, before this error."
            ) from error
