"""A run as programs read it: the same names on the command line and in the API."""

from typing import Any

from headwater.collectors.base import shown_config
from headwater.store.starting import Run


def run_values(run: Run) -> dict[str, Any]:
    """A run with its steps; times are Unix seconds, secrets are starred out."""
    return {
        "id": run.id,
        "status": run.status,
        "template_id": run.template_id,
        "template_name": run.template_name,
        "item_id": run.item_id,
        "item_version": run.item_version,
        "item_title": run.item_title,
        "trigger": run.trigger,
        "current_step_index": run.current_step_index,
        "next_step_type": run.next_step_type,
        "runtime_config": shown_config(run.runtime_config),
        "error_message": run.error_message,
        "created_at": run.created_at,
        "started_at": run.started_at,
        "completed_at": run.completed_at,
        "due_at": run.due_at,
        "steps": [
            {
                "step_index": step.index,
                "step_type": step.step_type,
                "is_critical": step.is_critical,
                "status": step.status,
                "attempts": step.attempts,
                "output_data": step.output,
                "error_message": step.error_message,
                "started_at": step.started_at,
                "completed_at": step.completed_at,
            }
            for step in run.steps
        ],
    }
