#!/usr/bin/env python3
"""Draws the memory of a server against the queries that it has answered, from samples of a soak.

    zonda bench soak … --count 100000000 --json soak.jsonl
    python3 bench/plot.py soak.jsonl "Zonda, a handler in Rust" > soak.svg
"""

import json
import math
import sys
from pathlib import Path

WIDTH, HEIGHT = 720, 320
LEFT, RIGHT, TOP, BOTTOM = 64, 700, 48, 272
MIB = 1 << 20


def read(path: str) -> list[tuple[float, float]]:
    """Millions of queries answered so far, and MiB then."""
    answered, points = 0, []
    for line in Path(path).read_text().splitlines():
        sample = json.loads(line)
        answered += sample["completed"]
        if sample["server"]:
            points.append((answered / 1e6, sample["server"]["resident_octets"] / MIB))
    return points


def ticks(high: float, count: int) -> list[float]:
    """Round numbers from 0 up to one, not many more than so many."""
    step = 10 ** math.floor(math.log10(high / count))
    step *= next(factor for factor in (1, 2, 5, 10) if high / (step * factor) <= count)
    return [step * number for number in range(math.floor(high / step) + 1)]


def text(x: float, y: float, anchor: str, words: str) -> str:
    """Words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{words}</text>'


def draw(points: list[tuple[float, float]], title: str) -> str:
    """The drawing; its vertical axis begins at 0, so that nothing looks larger than it is."""
    widest, highest = points[-1][0], max(mib for _, mib in points) * 1.15

    def x(million: float) -> float:
        return LEFT + million / widest * (RIGHT - LEFT)

    def y(mib: float) -> float:
        return BOTTOM - mib / highest * (BOTTOM - TOP)

    parts = [text(LEFT, 24, "start", f"<tspan font-weight='bold'>{title}</tspan>")]
    for mib in ticks(highest, 5):
        parts.append(f'<path d="M{LEFT} {y(mib):.1f}H{RIGHT}" stroke="#dfe3e8"/>')
        parts.append(text(LEFT - 8, y(mib) + 4, "end", f"{mib:g}"))
    for million in ticks(widest, 8):
        parts.append(text(x(million), BOTTOM + 20, "middle", f"{million:g}"))
    parts.append(text((LEFT + RIGHT) / 2, BOTTOM + 40, "middle", "million queries answered"))
    parts.append(text(LEFT - 8, TOP - 8, "end", "MiB"))
    line = "L".join(f"{x(million):.1f} {y(mib):.1f}" for million, mib in points)
    parts.append(f'<path d="M{line}" fill="none" stroke="#0067b1" stroke-width="2"/>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="system-ui, sans-serif" font-size="13" fill="#1b1f24">'
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>{"".join(parts)}</svg>\n'
    )


if __name__ == "__main__":
    sys.stdout.write(draw(read(sys.argv[1]), sys.argv[2]))
