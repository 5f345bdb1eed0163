"""The figures of a run on a GPU: kept as plain data, written to benchmarks/RESULTS-<gpu>.md.

The data: {"head": {what: text}, "parts": [{"name", "status", "seconds", "note"}], "results": [result], "missing":
[{"name", "reason"}]}. A part's status is "passed", "failed", "skipped" or "out of time". A result has "group", "name", "value"
and, as far as they apply, "spread" [low, high], "unit", "target", "at_most", "met", "predicted" and "note". Where several calls
have written one report, "calls" are [{"when", "command", "sources"}].
"""

import re
import statistics

# Words of a GPU's name without meaning for the model.
_NOISE = re.compile(r"nvidia|geforce|tesla|graphics|pcie|sxm\d*|hbm\d*e?|\d+gb", re.IGNORECASE)


def slug(name):
    """Returns the model only: "h200" for "NVIDIA H200", "rtx-4090" for "NVIDIA GeForce RTX 4090"."""
    words = re.sub(r"[^a-z0-9]+", "-", _NOISE.sub(" ", name).lower()).strip("-")
    return words or "gpu"


def middle(values):
    """Returns {"value": the median, "spread": the middle half}."""
    ordered = sorted(values)
    quarter = len(ordered) // 4
    return {"value": statistics.median(ordered), "spread": [ordered[quarter], ordered[-1 - quarter]]}


def result(group, name, values, unit="", target=None, at_most=False, note=""):
    """Returns a figure of several rounds, beside its target."""
    one = {"group": group, "name": name, "unit": unit, "note": note, **middle(values)}
    if target is not None:
        met = one["value"] <= target if at_most else one["value"] >= target
        one.update(target=target, at_most=at_most, met=met)
    return one


def number(value, unit):
    """Returns a value for people; seconds in a suitable unit, bytes in binary units."""
    if unit == "s":
        for scale, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if abs(value) >= scale:
                return f"{value / scale:.3g} {name}"
        return f"{value / 1e-6:.3g} µs"
    if unit == "bytes":
        return f"{value / 2**20:,.0f} MiB"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3f}" if abs(value) < 10 else f"{value:.1f}"
    return f"{text} {unit}".strip()


def verdict(one):
    if "target" not in one:
        return "", ""
    sign = "≤" if one["at_most"] else "≥"
    wanted = number(one["target"], one["unit"]) if one["unit"] == "s" else f"{one['target']:g}"
    return f"{sign} {wanted}", "met" if one["met"] else "MISSED"


def spread(one):
    low, high = one["spread"]
    return f"{number(low, one['unit'])} to {number(high, one['unit'])}" if low != high else ""


def prediction(one):
    return number(one["predicted"], one["unit"]) if "predicted" in one else ""


def line(one):
    """Returns a result as a line for a terminal."""
    wanted, met = verdict(one)
    met += f"  predicted {prediction(one)}" if "predicted" in one else ""
    between = f"({spread(one)})" if spread(one) else ""
    return f"  {one['name']:48} {number(one['value'], one['unit']):>14}  {between:30} {wanted:10} {met}".rstrip()


def counts(data):
    """Returns (met, missed, without an answer) over all targets."""
    judged = [one["met"] for one in data["results"] if "target" in one]
    return judged.count(True), judged.count(False), len(data["missing"])


def ended_well(data):
    """Returns whether every part ran and passed. A missed target is no failure: it stands in the report."""
    return bool(data["parts"]) and all(part["status"] in ("passed", "skipped") for part in data["parts"])


def summary(data):
    """Returns the terminal's last lines: failed parts, missed targets and missing figures."""
    met, missed, missing = counts(data)
    passed = sum(part["status"] == "passed" for part in data["parts"])
    lines = [f"  {part['name']:34} {part['status']:12} {part['seconds']:6.1f} s  {part['note']}".rstrip()
             for part in data["parts"] if part["status"] != "passed"]
    lines += [line(one) for one in data["results"] if one.get("met") is False]
    for reason in dict.fromkeys(one["reason"] for one in data["missing"]):
        names = [one["name"] for one in data["missing"] if one["reason"] == reason]
        shown = ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
        lines.append(f"  not measured: {shown}: {' '.join(reason.split())[:200]}")
    lines.append(f"  parts: {passed} of {len(data['parts'])} passed")
    return "\n".join([*lines, f"  targets: {met} met, {missed} missed, {missing} without a figure"])


def cell(text):
    return str(text).replace("|", "\\|").replace("\n", " ")


def table(heads, rows):
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(cell(part) for part in one) + " |" for one in lines)


def markdown(data):
    """Returns the whole page."""
    met, missed, missing = counts(data)
    page = [f"# Results on {data['head'].get('device', 'a GPU')}",
            "Written by `./dev gpu`. Contestants take turns in rounds, in one run on one device; a figure is the median of its "
            "rounds, with the middle half of them behind it. [docs/gpu.md](../docs/gpu.md) says what each figure counts.",
            table(["", ""], [[what, text] for what, text in data["head"].items()]),
            f"Targets: {met} met, {missed} missed; {missing} cases have no figure.",
            "## What ran",
            table(["Part", "Outcome", "Seconds", ""],
                  [[p["name"], p["status"], f"{p['seconds']:.0f}", p["note"]] for p in data["parts"]])]
    if len(data.get("calls", [])) > 1:
        page += ["Measured in several calls; a digest of the compiled files identifies the sources:",
                 table(["Call", "Begun", "Sources"], [[c["command"], c["when"][:19], c["sources"]] for c in data["calls"]])]
    for group in dict.fromkeys(one["group"] for one in data["results"]):
        of_group = [one for one in data["results"] if one["group"] == group]
        predicted = any("predicted" in one for one in of_group)
        rows = [[one["name"], *[prediction(one)] * predicted, number(one["value"], one["unit"]), spread(one), *verdict(one), one["note"]]
                for one in of_group]
        page += [f"## {group}", table(["", *["Predicted"] * predicted, "Median", "Middle half", "Target", "", ""], rows)]
        if predicted:
            page.append("Predicted from machine code before anything ran: [RESULTS-predictions.md](RESULTS-predictions.md).")
    if data["missing"]:
        page += ["## Not measured", table(["Case", "Why"], [[one["name"], one["reason"]] for one in data["missing"]])]
    return "\n\n".join(page) + "\n"
