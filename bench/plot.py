"""`python -m bench.plot FILE.json docs/growth.svg`: the growth curves of a benchmark run as one hand-made SVG."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 300, 220, 56, 40, 40


def axis_label(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def curve(spec: dict[str, Any], offset: int) -> str:
    """The SVG of one curve. Both axes start at zero, so that a flat curve looks flat."""
    points = spec["points"]
    most_x, most_y = max(x for x, _ in points), max(y for _, y in points) * 1.25
    inner_w, inner_h = WIDTH - LEFT - 16, HEIGHT - TOP - BOTTOM

    def place(x: float, y: float) -> tuple[float, float]:
        return offset + LEFT + inner_w * x / most_x, TOP + inner_h * (1 - y / most_y)

    dots = [place(x, y) for x, y in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
    marks = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="#b5541c"/>' for x, y in dots)
    x_texts = "".join(
        f'<text x="{place(x, 0)[0]:.1f}" y="{TOP + inner_h + 15}" text-anchor="middle">{axis_label(x)}</text>' for x, _ in points[-3:]
    )
    y_texts = "".join(
        f'<text x="{offset + LEFT - 6}" y="{place(0, y)[1] + 4:.1f}" text-anchor="end">{y:.3g}</text>' for y in (0, most_y / 2, most_y)
    )
    frame = f'<path d="M{offset + LEFT},{TOP} V{TOP + inner_h} H{offset + LEFT + inner_w}" fill="none" stroke="#888"/>'
    words = f'<text x="{offset + LEFT}" y="31">{spec["y"]}, by {spec["x"]}</text>'
    title = f'<text x="{offset + LEFT}" y="16" font-weight="bold">{spec["name"]}</text>{words}'
    return f'{title}{frame}{x_texts}{y_texts}<polyline points="{line}" fill="none" stroke="#b5541c" stroke-width="2"/>{marks}'


def draw(growth: list[dict[str, Any]]) -> str:
    panels = "".join(curve(spec, number * WIDTH) for number, spec in enumerate(growth))
    size = f'width="{WIDTH * len(growth)}" height="{HEIGHT}" viewBox="0 0 {WIDTH * len(growth)} {HEIGHT}"'
    style = 'font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}><rect width="100%" height="100%" fill="white"/>{panels}</svg>\n'


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(draw(json.loads(Path(sys.argv[1]).read_text())["growth"]))
