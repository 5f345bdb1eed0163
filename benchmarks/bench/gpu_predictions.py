"""Predictions of benchmarks/RESULTS-predictions.md for a card: shares of a copy's speed, by case. No share was measured."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE, CATALOG = ROOT / "benchmarks" / "RESULTS-predictions.md", ROOT / "core" / "machine" / "catalog.def"


def model_of(driver_name, catalog=None):
    """Returns the catalog's name of a card, "H200 SXM" for "NVIDIA H200"; "" without a catalog entry."""
    text = re.sub(r"//.*", "", catalog if catalog is not None else CATALOG.read_text(encoding="utf-8"))
    found = [(match, name) for name, match in re.findall(r'YOKE_MODEL\(\s*"([^"]*)",\s*"([^"]*)"', text)
             if f" {driver_name}".endswith(f" {match}")]
    return max(found, key=lambda one: len(one[0]))[1] if found else ""


def shares(model, page=None):
    """Returns {case: predicted share} of a card, from the tables of cases with a column for the card; {} without such a table."""
    text = page if page is not None else PAGE.read_text(encoding="utf-8")
    columns, found = None, {}
    for line in text.splitlines():
        cells = [cell.strip().strip("*") for cell in line.strip().strip("|").split("|")] if line.startswith("|") else []
        if not cells:
            columns = None
        elif columns is None:
            columns = cells
        elif columns[0] == "Case" and model in columns and re.fullmatch(r"\d+\.\d+", cells[columns.index(model)]):
            found[cells[0]] = float(cells[columns.index(model)])
    return found


def of_card(driver_name):
    """Returns the predictions for a card of this name."""
    model = model_of(driver_name)
    return shares(model) if model else {}
