"""Studies as tables for a person: 80 columns wide, percent, every number with its interval."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from shiftbed._tables import ROWS, add, add_column, grid
from shiftbed.studies.correlate import check_method

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType

    from shiftbed.studies.baseline import BaselineFit
    from shiftbed.studies.hypotheses import Declaration, Finding

__all__ = [
    "comparison_tables",
    "correlation_tables",
    "corruption_comparison",
    "effective_tables",
    "findings_table",
    "fit_rows",
    "fit_tables",
    "hypothesis_tables",
    "relative_tables",
    "score_tables",
]


def _percent(value: float | None, low: float | None = None, high: float | None = None) -> str:
    """Return percent with its interval.

    >>> _percent(0.7613, 0.757, 0.765), _percent(-0.012), _percent(None)
    ('76.1 [75.7, 76.5]', '-1.2', '-')
    """
    if value is None:
        return "-"
    if low is None or high is None:
        return f"{100 * value:.1f}"
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _signed(row: dict[str, Any], name: str) -> str:
    value = _percent(row[name], row["low"], row["high"])
    return value if value.startswith("-") else f"+{value}"


def _more(count: int) -> Iterator[str]:
    if count > ROWS:
        yield f"and {count - ROWS:,} more rows: --csv prints them all"


def score_tables(scores: pa.Table, level: float = 0.95) -> Iterator[RenderableType]:
    """Yield a table per metric, and after each why what is missing is missing."""
    rows = scores.to_pylist()
    for metric in dict.fromkeys(row["metric"] for row in rows):
        mine = [row for row in rows if row["metric"] == metric]
        known = [row for row in mine if row["value"] is not None]
        if known:
            notes = {row["note"] or "" for row in known}
            apart = ["note"] if len(notes) > 1 else []
            title = f"{metric}, in percent [{100 * level:g}% interval]"
            table = grid(title, ["model", "on", *apart], [metric, "n"])
            for row in known[:ROWS]:
                value = _percent(row["value"], row["low"], row["high"])
                n = "" if row["n"] is None else f"{row['n']:,}"
                names = [row["model"], row["on"], row["note"] or ""][: 2 + len(apart)]
                add(table, *names, value, n)
            yield table
            if not apart and notes != {""}:
                yield f"All of {metric}: {notes.pop()}."
            yield from _more(len(known))
        reasons = Counter(row["note"] for row in mine if row["value"] is None)
        for reason, count in reasons.items():
            yield f"no {metric} in {count} of {len(mine)} cases: {reason}"


def comparison_tables(
    compared: pa.Table, first: str, second: str, level: float = 0.95
) -> Iterator[RenderableType]:
    """Yield how two models differ on each setting, and the count of settings."""
    rows = compared.to_pylist()
    table = grid(
        f"{first} less {second}, in points [{100 * level:g}% interval]",
        ["setting"],
        ["first", "second", "difference", "n", "p (Holm)", "better"],
    )
    for row in rows[:ROWS]:
        better = {first: "first", second: "second", None: ""}[row["better"]]
        p = "" if row["p_holm"] is None else f"{row['p_holm']:.2g}"
        n = "" if row["n"] is None else f"{row['n']:,}"
        add(
            table,
            row["setting"],
            _percent(row["first"]),
            _percent(row["second"]),
            _signed(row, "difference"),
            n,
            p,
            better,
        )
    yield table
    yield from _more(len(rows))
    count = Counter(row["better"] for row in rows)
    yield (
        f"{first} is better on {count[first]}, {second} on {count[second]}; "
        f"on {count[None]} of {len(rows)} settings no difference is established"
    )
    if any(row["p"] is None for row in rows):
        yield (
            "Without p: imported accuracies, which cannot be paired picture by picture. Their "
            "intervals are those of independent samples, rather too wide, and uncorrected."
        )


def corruption_comparison(
    compared: pa.Table, first: str, second: str, level: float = 0.95
) -> Iterator[RenderableType]:
    """Yield one model's mCE in units of another's, and why where there is none."""
    rows = compared.to_pylist()
    known = [row for row in rows if row["note"] is None]
    if known:
        table = grid(
            f"mCE of {first}, where {second} has 100% [change, {100 * level:g}% interval]",
            ["on"],
            ["mCE", "change", "n", "p", "better"],
        )
        for row in known:
            better = {first: "first", second: "second", None: ""}[row["better"]]
            change, n, p = _signed(row, "difference"), f"{row['n']:,}", f"{row['p']:.2g}"
            on = f"{row['on']} ({row['corruptions']} corruptions)"
            add(table, on, _percent(row["mce"]), change, n, p, better)
        yield table
    for row in rows:
        if row["note"] is not None:
            yield f"no mCE on {row['on']}: {row['note']}"


def fit_rows(fits: Sequence[BaselineFit], level: float = 0.95) -> pa.Table:
    """Return fits as a table: one row each, every parameter with its interval."""
    import pyarrow as pa

    rows = []
    for fit in fits:
        row: dict[str, Any] = {
            "shifted": fit.shifted,
            "clean": fit.clean,
            "scale": fit.scale,
            "models": fit.models,
            "r2": None if fit.r2 != fit.r2 else fit.r2,
            "knee_accuracy": fit.knee_accuracy,
        }
        for name in ("intercept", "slope", "slope_above", "knee"):
            value = fit.parameters.get(name)
            low, high = (None, None) if value is None else fit.interval(name, level)
            row |= {name: value, f"{name}_low": low, f"{name}_high": high}
        rows.append(row)
    types = {"shifted": pa.string(), "clean": pa.string(), "scale": pa.string()}
    types["models"] = pa.int64()
    schema = pa.schema([(name, types.get(name, pa.float64())) for name in rows[0]])
    return pa.Table.from_pylist(rows, schema=schema)


def fit_tables(fits: Sequence[BaselineFit], level: float = 0.95) -> Iterator[RenderableType]:
    """Yield the fits of baselines, with a line for each knee."""
    scales = ", ".join(sorted({fit.scale for fit in fits}))
    table = grid(
        f"baseline fits, {scales} scale [{100 * level:g}% interval over models]",
        ["shifted", "on"],
        ["slope", "r2", "models"],
    )
    for fit in fits[:ROWS]:
        low, high = fit.interval("slope", level)
        slope = f"{fit.slope:.2f} [{low:.2f}, {high:.2f}]"
        add(table, fit.shifted, fit.clean, slope, f"{fit.r2:.3f}", f"{fit.models}")
    yield table
    yield from _more(len(fits))
    for fit in fits:
        if fit.knee_accuracy is not None and fit.slope_above is not None:
            from shiftbed.studies.lines import from_scale

            knee = [float(from_scale(end, fit.scale)) for end in fit.interval("knee", level)]
            low, high = fit.interval("slope_above", level)
            yield (
                f"{fit.shifted} bends at {_percent(fit.knee_accuracy, *knee)}% of {fit.clean}: "
                f"above it the slope is {fit.slope_above:.2f} [{low:.2f}, {high:.2f}]"
            )


def effective_tables(
    table: pa.Table, fit: BaselineFit, published: bool, level: float = 0.95
) -> Iterator[RenderableType]:
    """Yield each model's effective robustness on one shift."""
    rows = table.to_pylist()
    whose = "published testbed's" if published else "results' own"
    shown = grid(
        f"effective robustness on {fit.shifted}, in points [{100 * level:g}% interval]",
        ["model"],
        ["clean", "shifted", "expected", "effective", "robust?"],
    )
    for row in rows[:ROWS]:
        mark = "*" if row["extrapolated"] else ""
        add(
            shown,
            row["model"],
            _percent(row["clean"]) + mark,
            _percent(row["shifted"]),
            _percent(row["expected"]),
            _signed(row, "rho"),
            row["verdict"],
        )
    yield shown
    yield from _more(len(rows))
    yield "robust?: is it robust beyond what its clean accuracy predicts?"
    yield f"Baseline: {fit.models} models, the {whose}: {fit}."
    if any(row["extrapolated"] for row in rows):
        yield (
            f"* no model of the baseline has such a clean accuracy: it was fitted from "
            f"{_percent(fit.low)}% to {_percent(fit.high)}% and extrapolates here."
        )


def relative_tables(table: pa.Table, shifted: str, level: float = 0.95) -> Iterator[RenderableType]:
    """Yield what each model gained over the model that it was made from."""
    shown = grid(
        f"relative robustness on {shifted}, in points [{100 * level:g}% interval]",
        ["model", "made from"],
        ["accuracy", "relative", "gained?"],
    )
    rows = sorted(table.to_pylist(), key=lambda row: -row["tau"])
    for row in rows[:ROWS]:
        add(
            shown,
            row["model"],
            row["parent"],
            _percent(row["accuracy"]),
            _signed(row, "tau"),
            row["verdict"],
        )
    yield shown
    yield from _more(len(rows))
    mean = sum(row["tau"] for row in rows) / len(rows)
    yield f"mean of {len(rows)}: {100 * mean:+.1f} points"


def correlation_tables(
    table: pa.Table, method: str, level: float = 0.95
) -> Iterator[RenderableType]:
    """Yield one table per natural shift: its correlation with every synthetic average."""
    check_method(method)
    rows = table.to_pylist()
    for natural in dict.fromkeys(row["natural"] for row in rows):
        shown = grid(
            f"{natural}: {method} correlation of effective robustness [{100 * level:g}% interval]",
            ["synthetic average"],
            ["settings", method, "models"],
        )
        for row in rows:
            if row["natural"] == natural:
                value, low, high = (row[f"{method}{end}"] for end in ("", "_low", "_high"))
                add(
                    shown,
                    row["synthetic"],
                    f"{row['settings']}",
                    f"{value:+.2f} [{low:+.2f}, {high:+.2f}]",
                    f"{row['models']}",
                )
        yield shown


def findings_table(findings: Sequence[Finding]) -> pa.Table:
    """Return findings as a table: one row per comparison, measure and data set."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = []
    for finding in findings:
        start: dict[str, Any] = {
            "hypothesis": finding.hypothesis,
            "dataset": finding.dataset,
            "sign": finding.sign,
        }
        if not finding.means:
            rows.append({**start, "what": "nothing"})
        for measure, ends in finding.means.items():
            rows.append({**start, "what": "mean", "measure": measure, **_ends(*ends)})
        for one in finding.comparisons:
            rows.append(
                {
                    **start,
                    "what": "comparison",
                    "measure": one.measure,
                    "with": ", ".join(one.with_),
                    "without": ", ".join(one.without) or "baseline",
                    **_ends(one.difference, one.low, one.high),
                }
            )
    names = ("hypothesis", "dataset", "sign", "what", "measure", "with", "without")
    schema = pa.schema(
        [
            *[(name, pa.string()) for name in names],
            *[(name, pa.float64()) for name in ("difference", "low", "high")],
        ]
    )
    return pa.Table.from_pylist(rows, schema=schema)


def _ends(value: float, low: float, high: float) -> dict[str, float | None]:
    ends = {"difference": value, "low": low, "high": high}
    return {name: None if end != end else end for name, end in ends.items()}


def hypothesis_tables(
    findings: Sequence[Finding], declared: Declaration, details: bool
) -> Iterator[RenderableType]:
    """Yield the table of signs, and with ``details`` the numbers behind each."""
    measured = {f.dataset for f in findings if f.sign != "not measured"}
    datasets = [dataset.name for dataset in declared.datasets if dataset.name in measured]
    signs = {(f.hypothesis, f.dataset): f.sign for f in findings}
    table = grid(declared.title, ["hypothesis"])
    for name in datasets:
        add_column(table, name, number=True, heading=9)
    short = {"not established": "open", "not measured": ""}
    for hypothesis in declared.hypotheses:
        row = [signs.get((hypothesis.name, name), "not measured") for name in datasets]
        add(table, hypothesis.name, *(short.get(sign, sign) for sign in row))
    yield table
    yield "open: not established, neither for nor against. Empty: not measured."
    left_out = [d.name for d in declared.datasets if d.name not in measured]
    if left_out:
        yield f"Not measured at all: {', '.join(left_out)}."
    for finding in findings if details else ():
        if finding.sign == "not measured":
            continue
        table = grid(
            f"{finding.hypothesis} on {finding.dataset}: {finding.sign}",
            ["measure", "with", "without"],
            ["difference"],
        )
        for one in finding.comparisons:
            ends = _ends(one.difference, one.low, one.high)
            add(
                table,
                one.measure,
                _names(one.with_),
                _names(one.without) or "baseline",
                _signed(dict(ends), "difference"),
            )
        for measure, mean in finding.means.items():
            add(table, measure, "mean", "", _signed(dict(_ends(*mean)), "difference"))
        yield table


def _names(models: Sequence[str]) -> str:
    more = f" and {len(models) - 3} more" if len(models) > 3 else ""
    return ", ".join(models[:3]) + more
