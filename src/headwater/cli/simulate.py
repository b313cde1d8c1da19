"""The commands `simulate`, `tune` and `explain`.

They know neither the database nor the settings: `register` is given what they need, so that they can be tried
on trace files alone.
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from headwater.errors import HeadwaterError, InputError
from headwater.language import translate
from headwater.model import Plan

Histories = Callable[[], Mapping[str, Sequence[float]]]
FindPlan = Callable[[str], tuple[Plan, bytes | None]]

_DEFAULT_POLICIES = "fixed,miniflux,newsblur,commafeed,cadence,square-root,adaptive,clairvoyant"

Traces = Annotated[Path | None, typer.Option(help="A trace file instead of this installation's own history.")]
Window = Annotated[int, typer.Option(min=1, help="How many items a source shows at once.")]
MinInterval = Annotated[float, typer.Option(min=0, help="Shortest time between two visits, in minutes.")]
MaxInterval = Annotated[float, typer.Option(min=0.1, help="Longest time between two visits, in hours.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
PlotFile = Annotated[Path | None, typer.Option("--plot", help="Draw delay against requests as SVG.")]


def register(app: typer.Typer, histories: Histories, find_plan: FindPlan) -> None:
    """Add the three commands. `histories` reads publication times by source, `find_plan` a source's plan."""

    @app.command()
    def simulate(
        traces: Traces = None,
        budget: Annotated[
            str,
            typer.Option(help="Visits per source and day, separated by commas; 'own' for each policy's own."),
        ] = "24,6,2",
        policies: Annotated[
            str, typer.Option(help="Which policies, separated by commas.")
        ] = _DEFAULT_POLICIES,
        window: Window = 20,
        min_interval: MinInterval = 5.0,
        max_interval: MaxInterval = 336.0,
        plot: PlotFile = None,
        as_json: AsJson = False,
    ) -> None:
        """Replay history through policies and compare how soon they find what with how many requests."""
        from headwater.simulate.engine import Conditions, compare

        with _reported():
            trace = _load(traces, histories)
            names = [name.strip() for name in policies.split(",") if name.strip()]
            budgets = read_budgets(budget)
            conditions = Conditions(window, min_interval * 60.0, max_interval * 3600.0)
            with _Progress(len(names) * max(len(budgets), 1), hidden=as_json) as progress:
                results = compare(trace, names, budgets, conditions, progress.step)
            _write_plot(plot, results)
        if as_json:
            _print_json([result.to_json() for result in results])
        else:
            _print_table(results)

    @app.command()
    def tune(
        traces: Traces = None,
        delay: Annotated[
            float | None, typer.Option(min=0.1, help="The delay to aim at, in minutes: proposes a budget.")
        ] = None,
        budget: Annotated[
            float | None, typer.Option(min=0.01, help="Visits per source and day: says what they buy.")
        ] = None,
        percentile: Annotated[bool, typer.Option("--p95", help="Aim at the 95th percentile.")] = False,
        window: Window = 20,
        min_interval: MinInterval = 5.0,
        max_interval: MaxInterval = 24.0,
        plot: PlotFile = None,
        as_json: AsJson = False,
    ) -> None:
        """Propose a budget for a freshness target, or say what freshness a budget buys."""
        from headwater.simulate.engine import Conditions
        from headwater.simulate.tune import propose_budget, propose_freshness

        with _reported():
            if (delay is None) == (budget is None):
                raise InputError("give either --delay MINUTES or --budget VISITS")
            trace = _load(traces, histories)
            conditions = Conditions(window, min_interval * 60.0, max_interval * 3600.0)
            with _Progress(1, hidden=as_json) as progress:
                progress.step("adaptive", budget or 0.0)
                if delay is not None:
                    measure = "p95" if percentile else "mean"
                    proposal = propose_budget(trace, delay * 60.0, conditions, measure=measure)  # type: ignore[arg-type]
                else:
                    proposal = propose_freshness(trace, budget or 0.0, conditions)
            _write_plot(plot, proposal.curve)
        if as_json:
            _print_json(asdict(proposal))
            return
        _print_table([proposal.expected, *proposal.curve])
        print_line(
            translate(
                "set the budget to {visits} visits per source and day: mean delay about {delay} min"
            ).format(
                visits=f"{proposal.visits_per_day:.3g}", delay=f"{proposal.expected.mean_delay / 60:.3g}"
            )
        )

    @app.command()
    def explain(
        source: Annotated[str, typer.Argument(help="A source's number, name or address.")],
        as_json: AsJson = False,
    ) -> None:
        """Say when a source is visited next, and why."""
        from headwater.schedule.explain import explain_plan

        with _reported():
            plan, state = find_plan(source)
        zone = datetime.now().astimezone().tzinfo
        sentence = (
            explain_plan(plan, None, zone, state) if zone is not None else explain_plan(plan, state=state)
        )
        if as_json:
            _print_json({"next_at": plan.next_at, "reason": dict(plan.reason), "text": sentence})
        else:
            print_line(sentence)


def read_budgets(text: str) -> list[float]:
    """'24,6,2' as numbers; 'own' as none at all."""
    if text.strip() == "own":
        return []
    try:
        budgets = [float(part) for part in text.split(",")]
    except ValueError:
        budgets = []
    if not budgets or min(budgets) <= 0:
        raise InputError("{text} is no budget: give visits per day such as 24,6,2, or own", text=repr(text))
    return budgets


def _load(traces: Path | None, histories: Histories) -> Any:
    from headwater.simulate.trace import load_trace, trace_from_history

    return load_trace(traces) if traces is not None else trace_from_history(histories())


def _write_plot(path: Path | None, results: Sequence[Any]) -> None:
    if path is None:
        return
    from headwater.simulate.plot import draw_curves

    picture = draw_curves(
        results,
        translate("Delay against requests"),
        translate("visits per source and day"),
        translate("mean delay, minutes"),
    )
    path.write_text(picture, encoding="utf-8")


def print_line(text: str) -> None:
    typer.echo(text)


def _print_json(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, indent=2))


def _print_table(results: Sequence[Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for name in ("policy", "budget", "visits/day", "mean", "p50", "p95", "per source", "useless", "missed"):
        table.add_column(translate(name), justify="left" if name == "policy" else "right")
    for result in results:
        minutes = [
            result.mean_delay,
            result.median_delay,
            result.p95_delay,
            result.mean_source_delay,
        ]
        table.add_row(
            result.policy,
            "–" if result.budget is None else f"{result.budget:g}",
            f"{result.visits_per_day:.2f}",
            *[f"{seconds / 60:.1f}" for seconds in minutes],
            f"{result.useless_share:.0%}",
            str(result.missed),
        )
    console = Console(width=None if sys.stdout.isatty() else 110)
    console.print(table)
    console.print(translate("delays in minutes; visits per source and day"))


class _Progress:
    """A bar on the error output, so that the result alone is what a pipe gets."""

    def __init__(self, total: int, *, hidden: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            disable=hidden or not sys.stderr.isatty(),
            transient=True,
        )
        self._task = self._bar.add_task("", total=total)
        self._begun = False

    def step(self, policy: str, budget: float) -> None:
        """`policy` at `budget` begins; whatever was under way is done."""
        self._bar.update(
            self._task, description=f"{policy} {budget:g}" if budget else policy, advance=int(self._begun)
        )
        self._begun = True

    def __enter__(self) -> "_Progress":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()


class _reported:  # noqa: N801 - read as a word in a with statement
    """Ends the command with the error's own message and exit code."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, HeadwaterError):
            typer.echo(error.render(), err=True)
            raise typer.Exit(error.exit_code)
