"""One source in words: what `headwater source show` tells people."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from headwater.cli.output import from_now
from headwater.language import translate as t
from headwater.wording import NOTHING, duration, percent, tell_frequency

if TYPE_CHECKING:
    from headwater.model import Source
    from headwater.store.collecting.push import Subscription
    from headwater.store.reports.statistics import SourceStatistics


def tell_source(
    source: "Source",
    type_minutes: float,
    pipeline: str | None,
    subscription: "Subscription | None",
    statistics: "SourceStatistics | None",
) -> Iterator[tuple[str, str]]:
    """Pairs of a name and a value; what there is nothing to say of is left out."""
    from headwater.collectors.types import type_title
    from headwater.schedule.explain import explain_source
    from headwater.states import find_state, next_visit_at, tell_state

    metadata = source.metadata
    yield t("Name"), source.name
    yield "ID", str(source.id)
    yield t("Address"), source.url or NOTHING
    yield t("Type"), f"{type_title(source.type)} ({source.type})"
    if source.folder:
        yield t("Folder"), source.folder
    yield t("State"), tell_state(find_state(source))
    yield t("Last visit"), from_now(source.last_fetched_at)
    yield t("Next visit"), from_now(next_visit_at(source))
    for number, sentence in enumerate(
        explain_source(source, None, datetime.now().astimezone().tzinfo or UTC)
    ):
        yield t("Why") if number == 0 else "", sentence
    yield (
        t("Visits"),
        t("{visits}, of which {new} found something new and {failed} failed").format(
            visits=source.fetch_count, new=source.hit_count, failed=source.fetch_error_count
        ),
    )
    if statistics is not None:
        yield t("Publishes"), _tell_statistics(statistics)
    yield t("Newest item"), from_now(source.last_entry_at)
    yield t("Policy"), _tell_policy(source, type_minutes)
    if pipeline:
        yield t("Pipeline"), pipeline
    if subscription is not None:
        yield t("Pushed"), _tell_subscription(subscription)
    yield from _tell_config(source)
    for name, value in (
        (t("Title"), metadata.title if metadata.title != source.name else None),
        (t("Description"), metadata.description),
        (t("Site"), metadata.site_url),
        (t("Language"), metadata.language),
    ):
        if value:
            yield name, value
    for repair in metadata.repairs or ():
        yield t("Note"), repair.render()
    yield t("Added"), from_now(source.created_at)


def _tell_statistics(statistics: "SourceStatistics") -> str:
    known = tell_frequency(statistics.frequency_type) if statistics.hit_count else t("not known yet")
    parts = [
        known,
        t("cadence {cadence}").format(cadence=statistics.cadence),
        t("{share} of visits found new items").format(share=percent(statistics.hit_rate)),
    ]
    if statistics.backoff_until is not None:
        parts.append(t("in back-off; ends {time}").format(time=from_now(statistics.backoff_until)))
    return " · ".join(parts)


def _tell_policy(source: "Source", type_minutes: float) -> str:
    own = source.config.get("fetch_interval_minutes")
    if own:
        return t("every {time}, set for this source").format(time=duration(float(own) * 60))
    if source.policy == "interval":
        return t("every {time}, as its type").format(time=duration(type_minutes * 60))
    return source.policy or t("as in the settings")


def _tell_subscription(subscription: "Subscription") -> str:
    parts = [
        t("push: " + subscription.state),
        subscription.hub,
        t("{count} {count:delivery|deliveries}").format(count=subscription.pushes),
        f"{t('last')} {from_now(subscription.last_pushed_at)}",
    ]
    return " · ".join([*parts, *filter(None, [subscription.last_error])])


def _tell_config(source: "Source") -> Iterator[tuple[str, str]]:
    """The keys of its config but for the interval, which the policy tells of."""
    import orjson

    from headwater.collectors.base import shown_config
    from headwater.collectors.types import config_model_of

    shown = shown_config(source.config, config_model_of(source.type))
    own = {key: value for key, value in shown.items() if key != "fetch_interval_minutes"}
    for number, (key, value) in enumerate(own.items()):
        told = value if isinstance(value, str) else orjson.dumps(value).decode()
        yield t("Config") if number == 0 else "", f"{key} = {told}"
