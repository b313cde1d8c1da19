"""The tables of what goes out: outlets, messages, digests and alerts."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, Table, Text, UniqueConstraint, text

from headwater.store.core.tables.columns import Id, Seconds, column, metadata

outlets = Table(
    "outlets",
    metadata,
    Column("id", Id, primary_key=True),
    column("name", Text),  # as it stands in addresses and file names
    column("title", Text),
    column("description", Text, null=True),
    column("selection", Text, "'{}'"),  # JSON: which items it shows (store.selection)
    column("item_limit", Integer, "50"),
    column("hub_url", Text, null=True),
    column("token", Text, null=True),  # which its address must carry; NULL: open to all
    column(
        "content", Text, """'["original"]'"""
    ),  # JSON: what it publishes of an item, the first that there is
    column("template", Text, null=True),  # of the body, where the content says `template`
    column("own_media", Boolean, "false"),  # images and files that were archived are read from us
    column("digest", Text, null=True),  # the digest whose issues it publishes; NULL: items
    column("created_at", Seconds),
    column("updated_at", Seconds),
    UniqueConstraint("name"),
)

outlet_items = Table(  # what pipelines have published to an outlet
    "outlet_items",
    metadata,
    Column("outlet_name", Text, primary_key=True),
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), primary_key=True, autoincrement=False),
    column("published_at", Seconds),
)
Index("ix_outlet_items_item_id", outlet_items.c.item_id)

targets = Table(  # where messages are sent, by name
    "targets",
    metadata,
    Column("id", Id, primary_key=True),
    column("name", Text),
    column("kind", Text),  # webhook, email, apprise
    column("config", Text, "'{}'"),  # JSON: services.targets.TargetConfig; secrets by reference
    column("batch_minutes", Seconds, null=True),  # at most one message in that time; NULL: each at once
    column("batch_items", Integer, "20"),  # the most of them in one message
    column("batched_at", Seconds, null=True),  # when the last message with several was put into the outbox
    column("created_at", Seconds),
    column("updated_at", Seconds),
    UniqueConstraint("name"),
)

# The outbox: a row is written in the transaction that decides to send, and is sent until that has worked.
deliveries = Table(
    "deliveries",
    metadata,
    Column("id", Id, primary_key=True),
    Column("target_id", Id, ForeignKey("targets.id", ondelete="CASCADE"), nullable=False),
    column("kind", Text),  # item, batch, digest, alert, test
    column("idempotency_key", Text),
    column("title", Text),
    column("text", Text),
    column("html", Text, null=True),
    column("data", Text, "'{}'"),  # JSON: what programs get
    column("status", Text, "'pending'"),  # pending, sent, failed
    column("attempts", Integer, "0"),
    column("error_message", Text, null=True),
    column("lease_no", Id, "0"),
    column("due_at", Seconds, null=True),  # the place in line, or the end of a lease; NULL: it has ended
    column("created_at", Seconds),
    column("ended_at", Seconds, null=True),
    UniqueConstraint("target_id", "idempotency_key"),
)
DUE_DELIVERY = "due_at IS NOT NULL"
Index(
    "ix_deliveries_due_at",
    deliveries.c.due_at,
    sqlite_where=text(DUE_DELIVERY),
    postgresql_where=text(DUE_DELIVERY),
)

ENDED_DELIVERY = "ended_at IS NOT NULL"
Index(
    "ix_deliveries_ended_at",
    deliveries.c.ended_at,
    sqlite_where=text(ENDED_DELIVERY),
    postgresql_where=text(ENDED_DELIVERY),
)

waiting_messages = Table(  # for targets that take several in one message
    "waiting_messages",
    metadata,
    Column("id", Id, primary_key=True),
    Column("target_id", Id, ForeignKey("targets.id", ondelete="CASCADE"), nullable=False),
    column("idempotency_key", Text),
    column("title", Text),
    column("text", Text),
    column("html", Text, null=True),
    column("data", Text, "'{}'"),
    column("created_at", Seconds),
    UniqueConstraint("target_id", "idempotency_key"),
)

digests = Table(  # what is gathered from new items on a schedule
    "digests",
    metadata,
    Column("id", Id, primary_key=True),
    column("name", Text),
    column("title", Text),
    column("schedule", Text),  # publish.calendar
    column("zone", Text, "'UTC'"),
    column("selection", Text, "'{}'"),  # JSON: which items (store.selection)
    column("read_when", Text, "'stored'"),  # stored, changed, processed, as of cursors
    column("config", Text, "'{}'"),  # JSON: publish.digests.DigestConfig; secrets by reference
    column("targets", Text, "'[]'"),  # JSON: the names of the targets that it is sent to
    column("is_enabled", Boolean, "true"),
    column("position", Id, "0"),  # everything up to here was in an issue
    column("due_at", Seconds),  # when the next issue is due by the schedule
    column("claim_at", Seconds),  # when to make it: the same, after a failed attempt, or the end of a lease
    column("lease_no", Id, "0"),
    column("attempts", Integer, "0"),  # at the next issue
    column("error_message", Text, null=True),
    column("created_at", Seconds),
    column("updated_at", Seconds),
    UniqueConstraint("name"),
)

digest_issues = Table(
    "digest_issues",
    metadata,
    Column("id", Id, primary_key=True),
    Column("digest_id", Id, ForeignKey("digests.id", ondelete="CASCADE"), nullable=False),
    column("due_at", Seconds),
    column("language", Text, "''"),  # '': the digest names none
    column("revision", Integer, "1"),  # one more each time it is made again
    column("title", Text),
    column("text", Text),
    column("html", Text),
    column("item_ids", Text, "'[]'"),  # JSON
    column("omitted", Integer, "0"),  # how many items there was no room for
    column("data", Text, "'{}'"),  # JSON: the items as programs read them, the model and what it took
    column("error_message", Text, null=True),  # why the model wrote nothing
    column("made_at", Seconds),
    column("sends", Integer, "0"),  # how often it was sent again by hand
    UniqueConstraint("digest_id", "due_at", "language"),
)

alerts = Table(  # what needs a person, since when, and whether it was told
    "alerts",
    metadata,
    Column("id", Id, primary_key=True),
    column("kind", Text),  # publish.alerts
    column("subject", Text, "''"),  # what it is about: a source's number, a target's name, …
    column("data", Text, "'{}'"),  # JSON: what fills its sentence
    column("since_at", Seconds),
    column("seen_at", Seconds),  # when it was last found to hold
    column("told_at", Seconds, null=True),  # when a message with it was put into the outbox
    column("ended_at", Seconds, null=True),
    column("end_told_at", Seconds, null=True),
)
OPEN_ALERT = "ended_at IS NULL"
Index(
    "uq_alerts_open",
    alerts.c.kind,
    alerts.c.subject,
    unique=True,
    sqlite_where=text(OPEN_ALERT),
    postgresql_where=text(OPEN_ALERT),
)
UNTOLD_ALERT = "told_at IS NULL OR (ended_at IS NOT NULL AND end_told_at IS NULL)"
Index("ix_alerts_untold", alerts.c.id, sqlite_where=text(UNTOLD_ALERT), postgresql_where=text(UNTOLD_ALERT))
Index("ix_alerts_ended_at", alerts.c.ended_at)
