#!/usr/bin/env python3
"""Measures what bench/budgets.json bounds, prints each number beside its budget, and exits with 1 when one is exceeded.

    bench/run.py [--only NAME]... [--json FILE]

Each module in bench/measure/ has `NAMES`, the budgets it measures, and `measure(tree)`, which returns {name: Measured}. Numbers that
depend on the clock are differences or ratios of runs that took turns, so that a busy machine disturbs both sides alike; "unclear" means
that the budget lies inside the 95 % interval of the measurement.
"""
import argparse
import importlib
import json
import os
import platform
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from measure.tree import Tree  # noqa: E402


def modules():
    names = sorted(p.stem for p in (HERE / "measure").glob("*.py") if p.stem not in ("tree", "__init__"))
    return [importlib.import_module(f"measure.{name}") for name in names]


def processor():
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def table(results, budgets):
    rows = [("measured", "budget", "", "what")]
    for name, measured in results.items():
        budget = budgets[name]
        rows.append((f"{measured} {budget['unit']}".strip(), f"{budget['budget']:g} {budget['unit']}".strip(),
                     measured.verdict(budget["budget"]), f"{budget['what']} ({name})"))
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for row in rows:
        print(f"  {row[0]:>{widths[0]}}  {row[1]:>{widths[1]}}  {row[2]:<{widths[2]}}  {row[3]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--json", type=Path, metavar="FILE")
    args = parser.parse_args()

    budgets = json.loads((HERE / "budgets.json").read_text())
    wanted = set(args.only) or set(budgets)
    if wanted - set(budgets):
        parser.error(f"no budget called {', '.join(sorted(wanted - set(budgets)))}")

    tree, results = Tree(), {}
    for module in modules():
        if wanted & set(module.NAMES):
            print(f"==> {module.__doc__.splitlines()[0]}", flush=True)
            began = time.monotonic()
            results |= {name: value for name, value in module.measure(tree).items() if name in wanted}
            print(f"    {time.monotonic() - began:.0f} s", flush=True)
    unmeasured = sorted(wanted - set(results))

    print(f"\n{time.strftime('%Y-%m-%d')}, {processor()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    table(results, budgets)
    for name in unmeasured:
        print(f"  {name}: nothing measures it")
    if args.json:
        args.json.write_text(json.dumps({name: measured.value for name, measured in results.items()}, indent=2) + "\n")
    exceeded = [name for name, measured in results.items() if measured.verdict(budgets[name]["budget"]) == "EXCEEDED"]
    return 1 if exceeded or unmeasured else 0


if __name__ == "__main__":
    sys.exit(main())
