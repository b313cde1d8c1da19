"""What a digest or an outlet asks for that no pipeline makes: told when it is added, not found out by its silence."""

import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from sqlalchemy import Connection

from headwater.config import Settings
from headwater.errors import Text
from headwater.services.requests import MODEL_VARIABLES, secrets_for_steps
from headwater.store.pipelines.attaching import attachments_of
from headwater.store.pipelines.templates import list_templates
from headwater.store.reading.selection import Selection

# The step that makes a kind of result. Kinds of other packages' steps are not known here.
MAKERS = {
    "full_text": "enrich_content",
    "summary": "summarize_content",
    "translation": "translate_content",
    "transcript": "transcribe_content",
    "score": "score_content",
    "tags": "score_content",
    "analysis": "analyze_content",
    "media": "archive_media",
}


def missing_steps(connection: Connection, wanted: Iterable[str]) -> list[Text]:
    """A sentence for each result, as `translation:zh`, that no attached pipeline has the step for."""
    attached = (each for each in list_templates(connection) if attachments_of(connection, each.id, limit=1))
    steps = [step for template in attached for step in template.steps]
    return [
        Text(
            "no pipeline makes {result} yet: attach one with the step {step}",
            result=each,
            step=MAKERS[each.partition(":")[0]],
        )
        for each in dict.fromkeys(wanted)
        if each.partition(":")[0] in MAKERS and not any(_makes(step, each) for step in steps)
    ]


class Needs(Protocol):
    """What an entry of the gallery has made."""

    @property
    def asks_model(self) -> bool: ...
    @property
    def sends_mail(self) -> bool: ...


def missing_services(
    settings: Settings, needs: Needs, environment: Mapping[str, str] = os.environ
) -> list[Text]:
    """The services that are needed and that this process does not know."""
    known = secrets_for_steps(settings.secrets, environment)
    unset = [name for name in MODEL_VARIABLES[::2] if not known.get(name)] if needs.asks_model else []
    notes = [Text("the language model is not set: give {names}", names=", ".join(unset))] if unset else []
    if needs.sends_mail and not (settings.smtp_host and settings.mail_sender):
        notes.append(Text("no mail server is set: give HEADWATER_SMTP_HOST and HEADWATER_MAIL_SENDER"))
    return notes


def results_of(selection: Selection) -> list[str]:
    """The results that a selection asks for."""
    asked = {"score": selection.min_score is not None, "tags": bool(selection.tags)}
    return [*selection.has, *(kind for kind, is_asked in asked.items() if is_asked)]


def _makes(step: Mapping[str, Any], result: str) -> bool:
    kind, _, name = result.partition(":")
    if step["step_type"] != MAKERS[kind]:
        return False
    return kind != "translation" or not name or step["config"].get("language") == name
