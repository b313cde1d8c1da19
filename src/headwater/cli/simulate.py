"""`headwater simulate`, `tune` and `explain`: how visits are planned, and how well."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import Json, print_json, print_table, progress_bar, say
from headwater.cli.session import Session
from headwater.errors import InputError, Text
from headwater.language import translate as t

if TYPE_CHECKING:
    from headwater.simulate.results import Result
    from headwater.simulate.trace import Conditions, Trace

ALL_POLICIES = "fixed,miniflux,newsblur,commafeed,cadence,square-root,adaptive,clairvoyant"

Traces = Annotated[
    Path | None, typer.Option(help=t("A trace file instead of this installation's own history."))
]
Window = Annotated[int, typer.Option(min=1, help=t("How many items a source shows at once."))]
MinInterval = Annotated[float, typer.Option(min=0, help=t("Shortest time between two visits, in minutes."))]
MaxInterval = Annotated[float, typer.Option(min=0.1, help=t("Longest time between two visits, in hours."))]
DormantInterval = Annotated[
    float | None,
    typer.Option(min=0, max=7, help=t("The same for sources without new items for long, in days.")),
]
PlotFile = Annotated[Path | None, typer.Option("--plot", help=t("Draw delay against requests as SVG."))]


def simulate(
    context: typer.Context,
    traces: Traces = None,
    scenario: Annotated[
        list[str] | None,
        typer.Option(help=t("Run a scenario, by name or from a file, and check its bounds; 'all' for all.")),
    ] = None,
    budget: Annotated[
        str,
        typer.Option(help=t("Visits per source and day, separated by commas; 'own' for each policy's own.")),
    ] = "24,6,2",
    policies: Annotated[str, typer.Option(help=t("Which policies, separated by commas."))] = ALL_POLICIES,
    dates: Annotated[
        str,
        typer.Option(
            help=t(
                "What dates the items state: true, none, day, or hours added to the true ones, such as -5;"
                " only the adaptive policy reads them."
            )
        ),
    ] = "true",
    window: Window = 20,
    min_interval: MinInterval = 5.0,
    max_interval: MaxInterval = 24.0,
    dormant_interval: DormantInterval = None,
    plot: PlotFile = None,
    json: Json = False,
) -> None:
    from headwater.simulate.engine import compare
    from headwater.simulate.trace import falsify_dates

    if scenario:
        _run_scenarios(scenario, json=json)
        return
    trace, evidence = _load(context.obj, traces)
    names = [name.strip() for name in policies.split(",") if name.strip()]
    budgets = read_budgets(budget)
    conditions = _conditions(window, min_interval, max_interval, dormant_interval)
    with _steps(len(names) * max(len(budgets), 1), quiet=json) as step:
        results = compare(falsify_dates(trace, dates), names, budgets, conditions, step)
    _write_plot(plot, results)
    if json:
        print_json([result.to_json() for result in results])
    else:
        _print_results(results)
        say(evidence.render())


def tune(
    context: typer.Context,
    traces: Traces = None,
    delay: Annotated[
        float | None, typer.Option(min=0.1, help=t("The delay to aim at, in minutes: proposes a budget."))
    ] = None,
    percent: Annotated[
        float | None,
        typer.Option(
            min=50, max=99, help=t("Find this share of the items within --delay, instead of the mean.")
        ),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(min=0.01, help=t("Visits per source and day: shows the freshness they buy.")),
    ] = None,
    window: Window = 20,
    min_interval: MinInterval = 5.0,
    max_interval: MaxInterval = 24.0,
    dormant_interval: DormantInterval = None,
    plot: PlotFile = None,
    json: Json = False,
) -> None:
    from headwater.schedule.price import Goal
    from headwater.simulate.tune import propose

    if (delay is None) == (budget is None):
        raise InputError("give either --delay MINUTES or --budget VISITS")
    trace, evidence = _load(context.obj, traces)
    conditions = _conditions(window, min_interval, max_interval, dormant_interval)
    goal = Goal(budget or 6.0, None if delay is None else 60.0 * delay, percent and percent / 100.0)
    with _steps(1, quiet=json) as step:
        step("adaptive", budget or 0.0)
        proposal = propose(trace, goal, conditions)
    _write_plot(plot, proposal.curve)
    if json:
        print_json(asdict(proposal))
        return
    _print_results([proposal.expected, *proposal.curve])
    say(evidence.render())
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
    from headwater.schedule.explain import explain_source
    from headwater.states import find_state, tell_state
    from headwater.store.collecting.sources import find_source
    from headwater.store.core.clock import database_time
    from headwater.store.reports.statistics import read_source_statistics
    from headwater.views.sources import plan_json

    session: Session = context.obj
    with session.open_store() as store, store.reading() as connection:
        found = find_source(connection, source)
        statistics = read_source_statistics(connection, found.id, database_time(connection))
    if json:
        print_json(plan_json(found, statistics))
        return
    why, *more = explain_source(found, None, datetime.now().astimezone().tzinfo or UTC)
    say(t("{name} ({state}): {text}").format(name=found.name, state=tell_state(find_state(found)), text=why))
    for sentence in more:
        say(f"  {sentence}")
    for repair in found.metadata.repairs or ():
        say(f"  {repair.render()}")


def read_budgets(text: str) -> list[float]:
    """'24,6,2' as numbers; 'own' as none at all."""
    if text.strip() == "own":
        return []
    try:
        budgets = [float(part) for part in text.split(",")]
    except ValueError:
        budgets = []
    if not budgets or not min(budgets) > 0:
        raise InputError(
            "{text} is not a budget: give visits per day such as 24,6,2, or own", text=repr(text)
        )
    return budgets


def _load(session: Session, traces: Path | None) -> "tuple[Trace, Text]":
    """The history to replay, and how much it is. InputError if that is too little to advise from."""
    from headwater.simulate.trace import (
        FEWEST_DAYS,
        FEWEST_ITEMS,
        load_trace,
        trace_from_history,
        weigh_evidence,
    )
    from headwater.store.reading.items import publication_times

    if traces is not None:
        trace = load_trace(traces)
    else:
        with session.open_store() as store, store.reading() as connection:
            trace = trace_from_history(publication_times(connection))
    evidence = weigh_evidence(trace)
    counts: dict[str, Any] = {
        "sources": evidence.sources,
        "items": evidence.items,
        "days": f"{evidence.days:.1f}",
    }
    if not evidence.is_enough:
        raise InputError(
            "too little history: {items} {items:item|items} of {sources} {sources:source|sources} in {days}"
            " days; at least {fewest_items} items in {fewest_days:g} days are needed",
            **counts,
            fewest_items=FEWEST_ITEMS,
            fewest_days=FEWEST_DAYS,
        )
    return trace, Text(
        "history: {items} {items:item|items} of {sources} {sources:source|sources} in {days} days", **counts
    )


def _conditions(window: int, shortest: float, longest: float, dormant: float | None) -> "Conditions":
    from headwater.simulate.trace import Conditions

    return Conditions(window, shortest * 60.0, longest * 3600.0, (dormant or 0.0) * 86400.0)


def _run_scenarios(names: Sequence[str], *, json: bool) -> None:
    """Run scenarios and show each expectation with what was seen. Exits with 1 if a bound is not met."""
    from headwater.simulate.scenario import list_scenarios, load_scenario, run_scenario

    names = list_scenarios() if "all" in names else names
    loaded = [(name, load_scenario(name)) for name in names]
    findings = []
    with progress_bar(t("Replaying"), quiet=json) as advance:
        for done, (name, cases) in enumerate(loaded):
            advance(done, len(loaded), name)
            findings += [(name, finding) for finding in run_scenario(cases)]
    if json:
        print_json([{"scenario": name, **finding.to_json()} for name, finding in findings])
    else:
        print_table(
            (t("scenario"), t("case"), t("measure"), t("days"), t("bound"), t("seen"), ""),
            (
                (
                    name,
                    finding.case,
                    finding.measure,
                    finding.days,
                    finding.bound,
                    f"{finding.seen:.3g}",
                    t("met") if finding.is_met else t("not met"),
                )
                for name, finding in findings
            ),
            empty="",
        )
    if not all(finding.is_met for _, finding in findings):
        raise typer.Exit(1)


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
