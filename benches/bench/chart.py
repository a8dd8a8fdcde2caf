"""Answers as SVG: bars of ratios, or lines that grow. Drawn by hand: nothing to install."""

import math
from xml.sax.saxutils import escape

OURS, THEIRS, INK, FAINT = "#1f6f8b", "#b8b8b8", "#333333", "#e4e4e4"
LINES = [OURS, "#d9822b", "#7a7a7a"]


def frame(width, height, title, body):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="sans-serif" font-size="12" fill="{INK}">\n<title>{escape(title)}</title>\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        f'<text x="12" y="22" font-size="14" font-weight="bold">{escape(title)}</text>\n{body}</svg>\n'
    )


def bars(answer):
    """One bar for each row, as a ratio: times alone mean nothing on another machine."""
    key, against = ("x_peer", answer["peer"]) if answer["rows"][0]["x_peer"] else ("x_bare", answer["bare"])
    rows = [(row["name"], row[key]) for row in answer["rows"] if row[key] is not None]
    most = max(value for _, value in rows) or 1
    body = []
    for at, (name, value) in enumerate(rows):
        y = 40 + at * 24
        colour = OURS if name.startswith("ringfence") or key == "x_bare" else THEIRS
        length = max(1, round(330 * value / most))
        body.append(f'<text x="212" y="{y + 13}" text-anchor="end">{escape(name)}</text>')
        body.append(f'<rect x="220" y="{y}" width="{length}" height="17" fill="{colour}"/>')
        body.append(f'<text x="{226 + length}" y="{y + 13}">{value:.2f}x</text>')
    return frame(620, 50 + 24 * len(rows), f"{answer['title']} (x {against}; less is better)", "\n".join(body) + "\n")


def lines(answer):
    """Both axes from nought for y, by powers for x, which spans three of them."""
    every = [point for points in answer["series"].values() for point in points]
    least, most = math.log10(min(x for x, _ in every)), math.log10(max(x for x, _ in every))
    top = max(y for _, y in every) or 1

    def place(x, y):
        across = 70 + (math.log10(x) - least) / ((most - least) or 1) * 400
        return round(across, 1), round(250 - y / top * 200, 1)

    body = []
    for share in (0, 0.5, 1):
        y = 250 - share * 200
        body.append(f'<line x1="70" y1="{y}" x2="470" y2="{y}" stroke="{FAINT}"/>')
        body.append(f'<text x="64" y="{y + 4}" text-anchor="end">{top * share:,.4g}</text>')
    for x in sorted({x for x, _ in every}):
        body.append(f'<text x="{place(x, 0)[0]}" y="268" text-anchor="middle">{x:,}</text>')
    for at, (name, points) in enumerate(answer["series"].items()):
        colour = LINES[at % len(LINES)]
        path = " ".join(f"{x},{y}" for x, y in (place(*point) for point in points))
        body.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
        for point in points:
            x, y = place(*point)
            body.append(f'<circle cx="{x}" cy="{y}" r="3" fill="{colour}"/>')
        body.append(f'<text x="482" y="{60 + at * 18}" fill="{colour}">{escape(name)}</text>')
    body.append(f'<text x="270" y="288" text-anchor="middle">{escape(answer["across"])}</text>')
    return frame(620, 300, f"{answer['title']} ({answer['unit']})", "\n".join(body) + "\n")


def draw(answer):
    return lines(answer) if answer["kind"] == "curve" else bars(answer)
