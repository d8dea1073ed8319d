# SPDX-License-Identifier: Apache-2.0
"""Figures of matplotlib as small PNG files that say which rows they show."""

from __future__ import annotations

import io
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402
from PIL import Image, PngImagePlugin  # noqa: E402

from rendering.documents import PLOT_KEY  # noqa: E402

DOTS_PER_INCH = 90
COLORS_MAX = 48


def panels(count: int, width: float = 3.6, height: float = 3.0, lines: int = 1, **options):
    """A figure with `count` panels in `lines` lines."""
    columns = -(-count // lines)
    figure, axes = pyplot.subplots(lines, columns, figsize=(width * columns, height * lines), squeeze=False, **options)
    return figure, [panel for line in axes for panel in line][:count]


def save(figure, path: Path, rows_digest: str) -> None:
    figure.tight_layout()
    raw = io.BytesIO()
    figure.savefig(raw, format="png", dpi=DOTS_PER_INCH)
    pyplot.close(figure)
    text = PngImagePlugin.PngInfo()
    text.add_text(PLOT_KEY, rows_digest)
    small = Image.open(raw).convert("RGB").quantize(COLORS_MAX, dither=Image.Dither.NONE)
    path.parent.mkdir(parents=True, exist_ok=True)
    small.save(path, optimize=True, pnginfo=text)
