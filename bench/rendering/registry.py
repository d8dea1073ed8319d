# SPDX-License-Identifier: Apache-2.0
"""Names that documents use for what is rendered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rendering.rows import Rows

BLOCKS: dict[str, Callable[[], str]] = {}
VALUES: dict[str, Callable[[], str]] = {}
PLOTS: dict[str, Plot] = {}


@dataclass(frozen=True)
class Plot:
    """A picture in docs/plots. `rows` are all that it shows; `draw` is imported only to draw."""

    rows: Callable[[], Rows]
    module: str  # of rendering.plots
    function: str


def add(registered: dict, name: str, entry: object) -> None:
    if name in registered:
        raise ValueError(f"{name} is registered twice")
    registered[name] = entry


def block(name: str):
    """Decorates a function that renders a table, with the line that says where it comes from."""

    def register(function: Callable[[], str]) -> Callable[[], str]:
        add(BLOCKS, name, function)
        return function

    return register


def value(name: str):
    """Decorates a function that renders a value in the middle of a sentence."""

    def register(function: Callable[[], str]) -> Callable[[], str]:
        add(VALUES, name, function)
        return function

    return register


def plot(name: str, rows: Callable[[], Rows], module: str, function: str) -> None:
    add(PLOTS, name, Plot(rows, module, function))
