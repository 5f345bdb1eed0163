"""Writes docs/from-pytorch.md from the module's table: python tests/python/compat_page.py > docs/from-pytorch.md"""

import importlib
import pathlib
import re
import textwrap

HEAD = pathlib.Path(__file__).with_name("compat_page_head.md")
# Subjects of the page, with their places in the table, and how a script writes a name of the place.
SUBJECTS = (
    ("Functions", "torch", "torch."), ("Methods of tensors", "Tensor", "x."), ("Layers", "nn", "nn."), ("Modules", "nn.Module", "module."),
    ("torch.nn.functional", "nn.functional", "F."), ("Initial values", "nn.init", "nn.init."), ("torch.nn.utils", "nn.utils", "nn.utils."),
    ("Optimizers", "optim", "optim."), ("Schedules", "optim.lr_scheduler", "lr_scheduler."), ("Gradients", "autograd", "autograd."),
    ("Mixed precision", "amp", "amp."), ("Cards", "cuda", "torch.cuda."), ("Ranks", "distributed", "dist."), ("Data", "utils.data", "utils.data."),
    ("Linear algebra", "linalg", "torch.linalg."),
)


def wrapped(text):
    return textwrap.fill(text, 150, break_long_words=False, break_on_hyphens=False)


class Names:
    """PyTorch's names of a place, by what Yoke has for them."""

    def __init__(self, place):
        from yoke.compat.torch import _modules
        from yoke.compat.torch._facts import FACTS
        from yoke.compat.torch._table import MODULES, TABLE

        self.same, self.other, self.absent = [], [], {}
        below = {name.rpartition(".")[2] for name in MODULES if _modules.place_of(name.rpartition(".")[0]) == place}
        for name in sorted(set(FACTS[place]) - below):
            entry = TABLE.get(place, {}).get(name)
            if entry is None and owns(place, name):
                self.same.append(name)
            elif entry is not None:
                self.other.append((name, said(place, name, entry)))
            else:
                self.absent.setdefault(_modules.advice(place_of(place), name), []).append(name)


def place_of(place):
    return {"Tensor": "tensor"}.get(place, place)


def own_module(place):
    """Returns Yoke's module of a place, or None."""
    try:
        return importlib.import_module("yoke" if place == "torch" else f"yoke.{place}")
    except ModuleNotFoundError:
        return None


def owns(place, name):
    """Returns whether Yoke has a name of its own in a place, without PyTorch's rules."""
    import yoke

    kinds = {"Tensor": yoke.Tensor, "nn.Module": yoke.nn.Module, "optim.Optimizer": yoke.optim.Optimizer}
    if place not in kinds:
        return hasattr(own_module(place), name)
    if place == "Tensor" and yoke._yoke._foreign_name("tensor", name):
        return False
    return name in {each for kind in kinds[place].__mro__ for each in vars(kind)}


def said(place, name, entry):
    """Returns what to write without PyTorch's rules."""
    import yoke
    from yoke.compat.torch import _modules

    where, _, note = (part.strip() for part in entry.partition(";"))
    if note:
        return note
    if where[0] == "=":
        return "`yoke." + where[1:] + "`"
    if place == "distributed":
        return "write a group of `yoke.comm`; [launchers](launchers.md) translates"
    own = yoke._yoke._foreign_name({"torch": "yoke", "linalg": "yoke", "Tensor": "tensor"}.get(place, place), name)
    if own:
        return own
    if owns(place, name):
        return "the same, with fewer arguments"
    value = _modules.implementation(entry)
    told = (value.__doc__ or "").partition("\n")[0].rstrip(".") if callable(value) else ""
    if told.startswith("Writes x."):
        return "write `x.copy_(…)` of the method without `_`"
    if told.startswith("Refuses: "):
        return told.partition(": ")[2]
    return "a composition of other ops" if where.partition(".")[0] in ("functions", "reductions", "nets") else "not there; " + told[:1].lower() + told[1:]


def cell(text):
    return text.replace("|", "\\|")


def subject(title, place, prefix):
    names = Names(place)
    yield f"### {title}\n"
    if names.same:
        yield wrapped(f"The same: {' '.join(f'`{name}`' for name in names.same)}.") + "\n"
    renamed = [f"`{name}` is {told}" for name, told in names.other if told.startswith("`yoke.")]
    if renamed:
        yield wrapped(f"Another name: {', '.join(renamed)}.") + "\n"
    rows = {}
    for name, told in names.other:
        if not told.startswith("`yoke."):
            rows.setdefault(told, []).append(name)
    if rows:
        yield f"| `{prefix}…` | Yoke |\n|---|---|"
        yield from (f"| {' '.join(f'`{name}`' for name in group)} | {cell(told)} |" for told, group in rows.items())
        yield ""
    plain = names.absent.pop("", [])
    if names.absent:
        yield "| Not there | Instead |\n|---|---|"
        yield from (f"| {' '.join(f'`{name}`' for name in group)} | {cell(told)} |" for told, group in names.absent.items())
        yield ""
    if plain:
        yield wrapped(f"Not there: {' '.join(f'`{name}`' for name in plain)}.") + "\n"


def page():
    parts = [HEAD.read_text(encoding="utf-8").rstrip() + "\n"]
    for each in SUBJECTS:
        parts += subject(*each)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts)).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
