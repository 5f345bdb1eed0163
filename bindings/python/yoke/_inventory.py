"""Inventory of the machine: cards, their links, the network, and the models known to Yoke."""

from __future__ import annotations

from typing import Any

from yoke import _yoke
from yoke._named import named


class Record:
    """Named values; None stands for an unknown value."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)

    def __repr__(self) -> str:
        known = ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items() if v not in (None, "", []))
        return f"{type(self).__name__}({known})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]


class Card(Record):
    """GPU, usable or not, or MIG instance (`parent` is its card's index). The fields are those of yoke_card_info in
    yoke/inventory.h: bytes, hertz, watts, degrees Celsius; `usable`, and `reason` if not; `processes` on the card.
    """


class Process(Record):
    """Process on a card; `visible` is False if its pid belongs to another container."""


class Link(Record):
    """Connection of one card with another: `label` "NV18", "PIX", "SYS"; `path`, NVML's level; `nvlinks`; `peer`."""


class Network(Record):
    """InfiniBand or RoCE port."""


class Topology:
    """Connections of the cards: `links[a][b]`; printed, the matrix of `nvidia-smi topo -m`."""

    def __init__(self, cards: list[Card], links: list[list[Link]], text: str) -> None:
        self.cards, self.links, self._text = cards, links, text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Topology of {len(self.cards)} cards>"


class Inventory:
    """Snapshot of the machine: `cards` in the order of their PCI addresses, `networks`, `facts` (driver, nvml, cuda_driver, …), `topology`."""

    def __init__(self) -> None:
        taken = _yoke._inventory()
        links = [[Link(link) for link in card.pop("links")] for card in taken["cards"]]
        for card in taken["cards"]:
            card["processes"] = [Process(process) for process in card["processes"]]
        self.cards = [Card(card) for card in taken["cards"]]
        self.networks = [Network(network) for network in taken["networks"]]
        self.facts: dict[str, str] = taken["facts"]
        self.topology = Topology(self.cards, links, taken["topology"])

    def __repr__(self) -> str:
        return f"<Inventory: {len(self.cards)} cards, driver {self.facts['driver'] or 'not loaded'}>"


@named
def inventory() -> Inventory:
    """Returns every GPU of the machine with its state, from the PCI bus, NVML and /proc; no CUDA context is made.

    Takes some milliseconds; the call does not wait for a driver beyond its deadline (`facts["nvml_problem"]`).
    """
    return Inventory()


@named
def topology() -> Topology:
    """Returns the present connections of the cards."""
    return Inventory().topology


@named
def catalog() -> list[Record]:
    """Lists the models known to Yoke with their makers' figures: bytes, bytes per second, dense operations per second, watts."""
    return [Record(entry) for entry in _yoke._catalog()]


@named
def catalog_find(name, memory=0) -> Record | None:
    """Returns the model for a driver's name, such as "NVIDIA H200", and total memory in bytes (0: unknown); None without a match."""
    found = _yoke._catalog_find(name, memory)
    return None if found is None else Record(found)
