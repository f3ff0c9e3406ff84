"""Ratios that benchmarks measured, kept as a baseline, and those that fell since.

    python benchmarks/ratios.py [--write] [NAME ...]

Runs the benchmarks of ``baseline.json``, or those named, and says one sentence for each ratio that
is more than a quarter below the baseline's. ``--write`` keeps what was measured as the baseline.
A ratio says how many times quicker, or smaller, than its peer something is: more is better.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

Ratios = Mapping[str, float]

BASELINE = Path(__file__).with_name("baseline.json")
#: The share of a baseline that a ratio may lose: so much two runs of the same code differ.
MOST_LOST = 0.25


def write(path: Path | None, ratios: Ratios) -> None:
    """Write a benchmark's ratios as JSON, if a file was named."""
    if path is not None:
        path.write_text(json.dumps({name: round(one, 3) for name, one in ratios.items()}, indent=1))


def fallen(baseline: Ratios, found: Ratios) -> list[str]:
    """Return a sentence for each ratio of the baseline that fell, or was not measured.

    >>> fallen({"fog": 6.0, "snow": 10.0}, {"fog": 4.6, "snow": 7.0})
    ['snow: 7.0 times, 30% below the 10.0 of the baseline']
    """
    said = []
    for name, before in baseline.items():
        now = found.get(name)
        if now is None:
            said.append(f"{name}: not measured, and the baseline has {before:.1f} times")
        elif not now >= (1 - MOST_LOST) * before:
            lost = 1 - now / before
            said.append(
                f"{name}: {now:.1f} times, {lost:.0%} below the {before:.1f} of the baseline"
            )
    return said


def measured(name: str) -> dict[str, float]:
    """Run one benchmark, and return its ratios."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ratios.json"
        script = BASELINE.with_name(f"{name}.py")
        subprocess.run([sys.executable, str(script), "--json", str(file)], check=True)
        if not file.exists():
            sys.exit(f"{name}.py measured no ratios; its own words above say why")
        found: dict[str, float] = json.loads(file.read_text())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", help="benchmarks; those of the baseline, unless named")
    parser.add_argument("--write", action="store_true", help="keep the ratios as the baseline")
    options = parser.parse_args()
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    found = {name: measured(name) for name in options.names or baseline}
    if options.write:
        kept = dict(sorted((baseline | found).items()))
        BASELINE.write_text(json.dumps(kept, indent=1) + "\n")
        return
    said = [
        f"{name}.py, {one}"
        for name, ratios in found.items()
        for one in fallen(baseline.get(name, {}), ratios)
    ]
    print("\n".join(said) if said else "no ratio fell")
    sys.exit(bool(said))


if __name__ == "__main__":
    main()
