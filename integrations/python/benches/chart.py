"""Draws the record's tables of 1 million keys as bars.

    python benches/chart.py ../../benches/record/python-zen4.md > ../../benches/record/python-zen4.svg
"""

import re
import sys

# Colours that people with any colour vision tell apart (Okabe and Ito 2008).
COLORS = {
    "lanebloom": "#0072b2",
    "abloom": "#d55e00",
    "rbloom": "#009e73",
    "pybloomfiltermmap3": "#cc79a7",
    "fastbloom-rs": "#e69f00",
    "set": "#999999",
}
# (The numbers of a chart's rows are those of the record: a row that is missing there fails.)
ROWS = [
    ("add(key)", "add"),
    ("key in f", "in, present"),
    ("update(list)", "update(list)"),
    ("add_many(array)", "add_many"),
    ("contains_many(array)", "contains_many"),
]
WIDTH, LEFT, PANEL, BAR, GAP = 880, 150, 300, 9, 12


def tables(text):
    """The record's first table for each kind: row -> library -> ns."""
    for kind, array in ("ints", "numpy"), ("strings", "Arrow"):
        lines = re.search(rf"^\| 1,000,000 {kind}.*?(?=\n\n)", text, re.M | re.S).group().splitlines()
        names = [cell.strip() for cell in lines[0].split("|")[2:-1]]
        rows = {}
        for line in lines[2:]:
            head, *cells = (cell.strip() for cell in line.split("|")[1:-1])
            rows[head] = {name: float(cell) for name, cell in zip(names, cells) if cell}
        for row in "add_many", "contains_many":
            rows[row] = rows[f"{row}({array})"]
        yield kind, rows


def text(x, y, words, size=11, anchor="start", color="#282828", weight="normal"):
    style = f'font-size="{size}" text-anchor="{anchor}" fill="{color}" font-weight="{weight}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{words}</text>'


def draw(record):
    panels = dict(tables(record))
    out, x = [], 16
    for name, color in COLORS.items():
        out.append(f'<rect x="{x}" y="14" width="11" height="11" fill="{color}"/>')
        out.append(text(x + 16, 24, name, 12))
        x += 34 + 7.2 * len(name)
    for i, (kind, rows) in enumerate(panels.items()):
        left = LEFT + i * (PANEL + 90)
        most = max(max(rows[row].values()) for _, row in ROWS)
        out.append(text(left, 56, f"1,000,000 {kind}, 1%: ns per key", 13, weight="bold"))
        y = 72
        for label, row in ROWS:
            # The same rows have the same height in both panels.
            names = [name for name in COLORS if any(name in rows[row] for rows in panels.values())]
            height = BAR * len(names)
            if i == 0:
                out.append(text(left - 8, y + height / 2 + 4, label, 12, "end"))
            for name in names:
                if (ns := rows[row].get(name)) is not None:
                    width = max(ns / most * PANEL, 1)
                    out.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{BAR - 1}" fill="{COLORS[name]}"/>')
                    weight = "bold" if name == "lanebloom" else "normal"
                    out.append(text(left + width + 4, y + BAR - 1.2, f"{ns:.3g}", 9, weight=weight))
                y += BAR
            y += GAP
        out.append(f'<path d="M{left - 0.5} 66V{y - GAP + 6}" stroke="#aaaaaa"/>')
    height = y + 6
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    background = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([f'{head} font-family="sans-serif">', background, *out, "</svg>", ""])


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        sys.stdout.write(draw(file.read()))
