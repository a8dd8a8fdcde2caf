"""The marked parts of docs/BENCHMARKS.md: written by a run, never by hand.

A part starts with `<!-- bench:NAME -->` and ends with `<!-- /bench:NAME -->`, NAME being a
scenario or `machine`.
"""

import os
import re

from . import chart, table


def part(name):
    return re.compile(rf"(<!-- bench:{name} -->\n).*?(<!-- /bench:{name} -->)", re.DOTALL)


def missing(text, names):
    return [name for name in names if len(part(name).findall(text)) != 1]


def file_name(answer, who):
    return f"{answer['name']}-{'root' if who == 'root' else 'user'}.svg"


def charts(result, directory):
    os.makedirs(directory, exist_ok=True)
    for run in result["runs"]:
        for answer in run["answers"]:
            with open(os.path.join(directory, file_name(answer, run["as"])), "w", encoding="utf-8") as file:
                file.write(chart.draw(answer))


def fill(text, result, names):
    """The text with every measured scenario's part replaced; the others stay as they are."""
    if absent := missing(text, [*names, "machine"]):
        raise ValueError(f"no marked part for {', '.join(absent)}")
    machine = "\n".join(f"- {key}: {value}" for key, value in result["machine"].items())
    parts = {"machine": f"{machine}\n"}
    for run in result["runs"]:
        for answer in run["answers"]:
            picture = f"\n![{answer['title']}](charts/{file_name(answer, run['as'])})\n\n"
            parts[answer["scenario"]] = parts.get(answer["scenario"], "") + "\n" + table.markdown(answer, run["as"]) + picture
    for name, body in parts.items():
        text = part(name).sub(lambda match, body=body: match[1] + body + match[2], text)
    return text
