"""The tables of pipelines: templates, runs, steps, and what models were asked."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text, UniqueConstraint

from headwater.store.core.tables.columns import Id, Seconds, column, metadata

pipeline_templates = Table(
    "pipeline_templates",
    metadata,
    Column("id", Id, primary_key=True),
    column("name", Text),
    column("description", Text, null=True),
    column("steps", Text, "'[]'"),  # JSON: [{step_type, is_critical, config, timeout_seconds, retries}]
    column("run_on_change", Boolean, "false"),
    column("place", Integer, "0"),  # runs of one item happen in this order, then in that of the ids
    column("created_at", Seconds),
    column("updated_at", Seconds),
    UniqueConstraint("name"),
)

pipeline_attachments = Table(  # whose new items start a template
    "pipeline_attachments",
    metadata,
    Column("id", Id, primary_key=True),
    Column("template_id", Id, ForeignKey("pipeline_templates.id", ondelete="CASCADE"), nullable=False),
    column("scope", Text),  # everything, type, folder, tag, source
    column("value", Text, "''"),  # of a type, folder or tag its name, of a source its id
    column("created_at", Seconds),
    UniqueConstraint("template_id", "scope", "value"),
    Index(None, "scope", "value"),
)

pipeline_executions = Table(
    "pipeline_executions",
    metadata,
    Column("id", Id, primary_key=True),
    Column("item_id", Id, ForeignKey("items.id", ondelete="CASCADE"), nullable=False),
    column("item_version", Integer),
    Column("template_id", Id, ForeignKey("pipeline_templates.id", ondelete="SET NULL")),
    column("status", Text, "'pending'"),  # pending, running, completed, failed, skipped
    column("current_step_index", Integer, "0"),
    column("trigger", Text, "'scheduled'"),  # scheduled, manual
    column("runtime_config", Text, "'{}'"),
    column("error_message", Text, null=True),
    column("created_at", Seconds),
    column("started_at", Seconds, null=True),
    column("completed_at", Seconds, null=True),
    column("lease_no", Id, "0"),
    column("lease_until", Seconds, null=True),
    column("forced_no", Integer, "0"),  # 0: the one run of this version; 1, 2, …: asked for all the same
    column("rerun_no", Integer, "0"),  # how often steps that had completed were run again
    # The queue: `due_at` is the place in line as in `sources`, NULL when the run has ended or waits for another run
    # of its item.
    column("next_step_type", Text, null=True),
    column("due_at", Seconds, null=True),
    column("slot_at", Seconds, null=True),  # the start a rate limit has given to the next step
    column("cancel_requested_at", Seconds, null=True),
)
Index("ix_pipeline_executions_due", pipeline_executions.c.due_at)
Index(
    "uq_pipeline_executions_version",
    pipeline_executions.c.item_id,
    pipeline_executions.c.item_version,
    pipeline_executions.c.template_id,
    pipeline_executions.c.forced_no,
    unique=True,
)
Index("ix_pipeline_executions_status", pipeline_executions.c.status, pipeline_executions.c.id)
Index("ix_pipeline_executions_item", pipeline_executions.c.item_id)

pipeline_steps = Table(
    "pipeline_steps",
    metadata,
    Column("id", Id, primary_key=True),
    Column(
        "execution_id",
        Id,
        ForeignKey("pipeline_executions.id", ondelete="CASCADE"),
        nullable=False,
    ),
    column("step_index", Integer),
    column("step_type", Text),
    column("is_critical", Boolean, "true"),
    column("config", Text, "'{}'"),
    column("timeout_seconds", Seconds, null=True),
    column("retries", Integer, "0"),
    column("status", Text, "'pending'"),
    column("attempts", Integer, "0"),
    column("crashes", Integer, "0"),  # attempts that began and never ended: their worker died
    column("output_data", Text, null=True),
    column("error_message", Text, null=True),
    column("started_at", Seconds, null=True),
    column("completed_at", Seconds, null=True),
    UniqueConstraint("execution_id", "step_index"),
)

pipeline_step_results = Table(  # what steps gave before they were run again
    "pipeline_step_results",
    metadata,
    Column("id", Id, primary_key=True),
    Column("execution_id", Id, ForeignKey("pipeline_executions.id", ondelete="CASCADE"), nullable=False),
    column("step_index", Integer),
    column("status", Text),
    column("attempts", Integer, "0"),
    column("output_data", Text, null=True),
    column("error_message", Text, null=True),
    column("started_at", Seconds, null=True),
    column("completed_at", Seconds, null=True),
    column("replaced_at", Seconds),
    Index(None, "execution_id", "step_index"),
)

model_usage = Table(  # what models were asked in a day, by whom
    "model_usage",
    metadata,
    Column("day", Text, primary_key=True),  # in UTC, as 2026-02-25
    Column("owner", Text, primary_key=True),  # template:3, digest:morning
    Column("model", Text, primary_key=True),
    column("requests", Id, "0"),
    column("cached", Id, "0"),  # questions answered from the cache
    column("input_tokens", Id, "0"),
    column("output_tokens", Id, "0"),
    column("cost", Seconds, "0"),  # where the prices are known
    column("refused", Integer, "0"),  # requests that were not made, since the budget was spent
)

model_answers = Table(  # the cache: what a model said to a question
    "model_answers",
    metadata,
    Column("key", LargeBinary, primary_key=True),  # a hash of endpoint, model, messages and schema
    column("answer", Text),
    column("input_tokens", Integer, "0"),
    column("output_tokens", Integer, "0"),
    column("created_at", Seconds),
    column("used_at", Seconds),
)
Index("ix_model_answers_used_at", model_answers.c.used_at)

step_rates = Table(
    "step_rates",
    metadata,
    Column("step_type", Text, primary_key=True),
    column("next_at", Seconds),  # the next free start under the type's rate limit, for all workers together
)
