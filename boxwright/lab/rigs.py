"""Rigs: the cards that a simulated host pretends to have, read from data/rigs.yml."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from boxwright.errors import EXIT_BAD_INPUT, UserError

RIGS_FILE = Path(__file__).with_name("data") / "rigs.yml"
#: Names of cards are derived from this and the host's name, so that a host made anew has the same cards.
NAMESPACE = uuid.UUID("6f9d3c7e-51c0-4d0e-9a55-0a6d2f3b7c11")
#: PCI buses of the first, second, … card, as two-slot boards number them.
FIRST_BUS = 0x01


@dataclass(frozen=True)
class CardModel:
    """One model of card. Memory in MiB, power in W, clocks in MHz; PCI identifiers in lower-case hex."""

    name: str
    architecture: str
    compute_capability: str
    pci_vendor: str
    pci_device: str
    pci_subsystem_vendor: str
    pci_subsystem_device: str
    pci_class: str
    memory_total: int
    memory_reserved: int
    bar1_total: int
    power_default: int
    power_min: int
    power_max: int
    clock_graphics_max: int
    clock_memory_max: int
    pcie_generation: int
    pcie_width: int
    vbios: str


@dataclass(frozen=True)
class Card(CardModel):
    """One card of a host. index: as nvidia-smi counts; bus_id: "0000:01:00.0"; uuid: "GPU-…"."""

    index: int
    bus_id: str
    uuid: str
    numa_node: int


@dataclass(frozen=True)
class Rig:
    """The cards of one host. link: the word of `nvidia-smi topo -m` between any two of them."""

    name: str
    cards: tuple[Card, ...]
    link: str
    nouveau: bool

    def to_json(self) -> dict[str, Any]:
        """The rig as plain values."""
        return asdict(self)


def load(name: str, host: str, source: Path = RIGS_FILE) -> Rig:
    """The rig called `name`, with the identities that its cards have on `host`.

    Raises UserError when there is no such rig, or when the file does not say what it must.
    """
    document = _mapping(yaml.safe_load(source.read_text(encoding="utf-8")), source, "the file")
    models = _mapping(document.get("cards"), source, "cards")
    rigs = _mapping(document.get("rigs"), source, "rigs")
    if name not in rigs:
        raise UserError(
            f"no rig is called {name!r}",
            where=str(source),
            status=EXIT_BAD_INPUT,
            ways_out=("one of: " + ", ".join(rigs),),
        )
    rig = _mapping(rigs[name], source, f"rigs.{name}")
    names = rig.get("cards")
    if not isinstance(names, list):
        raise UserError(f"rigs.{name}.cards must be a list of names of cards", where=str(source))
    cards = []
    for index, model_name in enumerate(names):
        if model_name not in models:
            raise UserError(
                f"rigs.{name}.cards[{index}]: no card is called {model_name!r}",
                where=str(source),
                ways_out=("one of: " + ", ".join(models),),
            )
        model = _card_model(
            _mapping(models[model_name], source, f"cards.{model_name}"), source, str(model_name)
        )
        cards.append(
            Card(
                **asdict(model),
                index=index,
                bus_id=f"0000:{FIRST_BUS + index:02x}:00.0",
                uuid=f"GPU-{uuid.uuid5(NAMESPACE, f'{host}/{index}')}",
                numa_node=0,
            )
        )
    link, nouveau = rig.get("link"), rig.get("nouveau")
    if not isinstance(link, str) or not isinstance(nouveau, bool):
        raise UserError(f"rigs.{name} must say link (a word) and nouveau (true or false)", where=str(source))
    return Rig(name=name, cards=tuple(cards), link=link, nouveau=nouveau)


def names(source: Path = RIGS_FILE) -> list[str]:
    """The names of all rigs, in the file's order."""
    document = _mapping(yaml.safe_load(source.read_text(encoding="utf-8")), source, "the file")
    return [str(name) for name in _mapping(document.get("rigs"), source, "rigs")]


def _mapping(value: object, source: Path, what: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise UserError(f"{what} must be a mapping", where=str(source))
    return value


def _card_model(values: Mapping[str, Any], source: Path, name: str) -> CardModel:
    wanted = {field.name: field.type for field in fields(CardModel)}
    problems = [f"{key} is missing" for key in wanted if key not in values]
    problems += [f"{key} is not known" for key in values if key not in wanted]
    problems += [
        f"{key} must be {'a whole number' if kind == 'int' else 'text'}, not {values[key]!r}"
        for key, kind in wanted.items()
        if key in values and not isinstance(values[key], int if kind == "int" else str)
    ]
    if problems:
        raise UserError(f"cards.{name}: " + "; ".join(problems), where=str(source))
    return CardModel(**values)
