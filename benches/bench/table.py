"""Answers as text: for the terminal and, as Markdown, for docs/BENCHMARKS.md."""


def number(value):
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}"


def columns(answer):
    heads = []
    if answer["bare"]:
        heads.append(("x_bare", f"x {answer['bare']}"))
    if answer["peer"]:
        heads.append(("x_peer", f"x {answer['peer']}"))
    if not any(row["x_bare"] or row["x_peer"] for row in answer["rows"]):
        raise ValueError(f"{answer['name']}: times without a ratio")
    return [*heads, ("median", f"median {answer['unit']}"), ("p95", f"p95 {answer['unit']}")]


def cells(answer):
    """The head line and the lines below it."""
    if answer["kind"] == "curve":
        names = list(answer["series"])
        points = {name: dict(map(tuple, values)) for name, values in answer["series"].items()}
        every = sorted({x for values in points.values() for x in values})
        head = [answer["across"], *[f"{name}, {answer['unit']}" for name in names]]
        return head, [[f"{x:,}", *[number(points[name].get(x)) for name in names]] for x in every]
    shown = columns(answer)
    rows = []
    for row in answer["rows"]:
        # One sample has no 95th percentile.
        rows.append([row["name"], *[number(None if key == "p95" and row["rounds"] == 1 else row[key]) for key, _ in shown]])
    return ["", *[title for _, title in shown]], rows


def text(answer):
    head, rows = cells(answer)
    widths = [max(len(line[at]) for line in [head, *rows]) for at in range(len(head))]
    lines = [answer["title"]]
    for line in [head, *rows]:
        lines.append("  ".join([line[0].ljust(widths[0]), *[cell.rjust(width) for cell, width in zip(line[1:], widths[1:])]]))
    if answer["note"]:
        lines.append(f"({answer['note']})")
    return "\n".join(lines) + "\n"


def markdown(answer, who):
    head, rows = cells(answer)
    lines = [f"**{answer['title']}**, as {who}", ""]
    lines.append("| " + " | ".join(head) + " |")
    lines.append("|---|" + "---:|" * (len(head) - 1))
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    if answer["note"]:
        lines += ["", f"Note: {answer['note']}."]
    return "\n".join(lines) + "\n"
