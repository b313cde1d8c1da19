"""`headwater simulate`, `tune` and `explain`: how visits are planned, and how well."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import Json, iso, print_json, print_table, progress_bar, say
from headwater.cli.session import Session
from headwater.errors import InputError
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.simulate.results import Result
    from headwater.simulate.trace import Trace

ALL_POLICIES = "fixed,miniflux,newsblur,commafeed,cadence,square-root,adaptive,clairvoyant"

Traces = Annotated[
    Path | None, typer.Option(help=t("A trace file instead of this installation's own history."))
]
Window = Annotated[int, typer.Option(min=1, help=t("How many items a source shows at once."))]
MinInterval = Annotated[float, typer.Option(min=0, help=t("Shortest time between two visits, in minutes."))]
MaxInterval = Annotated[float, typer.Option(min=0.1, help=t("Longest time between two visits, in hours."))]
PlotFile = Annotated[Path | None, typer.Option("--plot", help=t("Draw delay against requests as SVG."))]


def simulate(
    context: typer.Context,
    traces: Traces = None,
    budget: Annotated[
        str,
        typer.Option(help=t("Visits per source and day, separated by commas; 'own' for each policy's own.")),
    ] = "24,6,2",
    policies: Annotated[str, typer.Option(help=t("Which policies, separated by commas."))] = ALL_POLICIES,
    window: Window = 20,
    min_interval: MinInterval = 5.0,
    max_interval: MaxInterval = 336.0,
    plot: PlotFile = None,
    json: Json = False,
) -> None:
    from headwater.simulate.engine import Conditions, compare

    trace = _load(context.obj, traces)
    names = [name.strip() for name in policies.split(",") if name.strip()]
    budgets = read_budgets(budget)
    conditions = Conditions(window, min_interval * 60.0, max_interval * 3600.0)
    with _steps(len(names) * max(len(budgets), 1), quiet=json) as step:
        results = compare(trace, names, budgets, conditions, step)
    _write_plot(plot, results)
    if json:
        print_json([result.to_json() for result in results])
    else:
        _print_results(results)


def tune(
    context: typer.Context,
    traces: Traces = None,
    delay: Annotated[
        float | None, typer.Option(min=0.1, help=t("The delay to aim at, in minutes: proposes a budget."))
    ] = None,
    budget: Annotated[
        float | None, typer.Option(min=0.01, help=t("Visits per source and day: says what they buy."))
    ] = None,
    percentile: Annotated[bool, typer.Option("--p95", help=t("Aim at the 95th percentile."))] = False,
    window: Window = 20,
    min_interval: MinInterval = 5.0,
    max_interval: MaxInterval = 24.0,
    plot: PlotFile = None,
    json: Json = False,
) -> None:
    from headwater.simulate.engine import Conditions
    from headwater.simulate.tune import propose_budget, propose_freshness

    if (delay is None) == (budget is None):
        raise InputError("give either --delay MINUTES or --budget VISITS")
    trace = _load(context.obj, traces)
    conditions = Conditions(window, min_interval * 60.0, max_interval * 3600.0)
    with _steps(1, quiet=json) as step:
        step("adaptive", budget or 0.0)
        if delay is not None:
            proposal = propose_budget(
                trace, delay * 60.0, conditions, measure="p95" if percentile else "mean"
            )
        else:
            proposal = propose_freshness(trace, budget or 0.0, conditions)
    _write_plot(plot, proposal.curve)
    if json:
        print_json(asdict(proposal))
        return
    _print_results([proposal.expected, *proposal.curve])
    say(
        t(
            "{visits} visits per source and day give a mean delay of about {delay} min;"
            " set HEADWATER_BUDGET_VISITS_PER_DAY={visits}"
        ).format(visits=f"{proposal.visits_per_day:.3g}", delay=f"{proposal.expected.mean_delay / 60:.3g}")
    )


def explain(
    context: typer.Context,
    source: Annotated[str, typer.Argument(help=t("A source's number, name or address."))],
    json: Json = False,
) -> None:
    from headwater.model import Plan
    from headwater.schedule.explain import explain_plan
    from headwater.store.sources import find_source

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = find_source(connection, source)
    if found.next_fetch_at is None:
        sentence: str = t("it has not been visited yet and is first in line")
    else:
        plan = Plan(found.next_fetch_at, found.plan_reason)
        zone = datetime.now().astimezone().tzinfo or UTC
        sentence = explain_plan(plan, None, zone, found.policy_state)
    if json:
        print_json(
            {
                "source_id": found.id,
                "next_fetch_at": iso(found.next_fetch_at),
                "reason": dict(found.plan_reason),
                "text": sentence,
            }
        )
    else:
        say(f"{found.name}: {sentence}")


def read_budgets(text: str) -> list[float]:
    """'24,6,2' as numbers; 'own' as none at all."""
    if text.strip() == "own":
        return []
    try:
        budgets = [float(part) for part in text.split(",")]
    except ValueError:
        budgets = []
    if not budgets or not min(budgets) > 0:
        raise InputError("{text} is no budget: give visits per day such as 24,6,2, or own", text=repr(text))
    return budgets


def _load(session: Session, traces: Path | None) -> "Trace":
    from headwater.simulate.trace import load_trace, trace_from_history
    from headwater.store.items import publication_times

    if traces is not None:
        return load_trace(traces)
    with session.open_store() as store, store.reading() as connection:
        return trace_from_history(publication_times(connection))


def _write_plot(path: Path | None, results: "Sequence[Result]") -> None:
    if path is None:
        return
    from headwater.simulate.plot import draw_curves

    picture = draw_curves(
        results, t("Delay against requests"), t("visits per source and day"), t("mean delay, minutes")
    )
    try:
        path.write_text(picture, encoding="utf-8")
    except OSError as error:
        raise InputError("cannot write {path}: {problem}", path=path, problem=error.strerror) from None


def _print_results(results: "Sequence[Result]") -> None:
    print_table(
        (
            t("policy"),
            t("budget"),
            t("visits/day"),
            t("mean"),
            t("p50"),
            t("p95"),
            t("per source"),
            t("useless"),
            t("missed"),
        ),
        (
            (
                result.policy,
                "–" if result.budget is None else f"{result.budget:g}",
                f"{result.visits_per_day:.2f}",
                f"{result.mean_delay / 60:.1f}",
                f"{result.median_delay / 60:.1f}",
                f"{result.p95_delay / 60:.1f}",
                f"{result.mean_source_delay / 60:.1f}",
                f"{result.useless_share:.0%}",
                result.missed,
            )
            for result in results
        ),
        empty="",
    )
    say(t("delays in minutes; visits per source and day"))


@contextmanager
def _steps(total: int, *, quiet: bool) -> Iterator[Callable[[str, float], None]]:
    """A progress bar that moves when the next policy at the next budget begins."""
    begun = -1
    with progress_bar(t("Replaying"), quiet=quiet) as advance:

        def step(policy: str, budget: float) -> None:
            nonlocal begun
            begun += 1
            advance(begun, total, f"{policy} {budget:g}" if budget else policy)

        yield step
