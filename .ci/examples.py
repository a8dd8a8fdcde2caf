#!/usr/bin/env python3
"""Fails where the documentation of the library shows something and does not show its use.

Reads the pages that `cargo doc` has made, so what counts is what users see: every struct, enum, trait,
function and macro has an example of its own, and every method has one or is called in one on its page.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}


class Page(HTMLParser):
    """The examples of a page, and the methods that it describes."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.own = False
        self.methods = []
        self.code = []
        # How deep the example is that is being read.
        self.reading = 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        if tag in VOID:
            return
        attributes = dict(attributes)
        classes = (attributes.get("class") or "").split()
        name = attributes.get("id") or ""
        self.open.append((tag, classes, name))
        ours = not self.within("trait-implementations-list", "synthetic-implementations-list", "blanket-implementations-list")
        if re.match(r"(ty)?method\.", name) and tag == "section" and ours:
            self.methods.append(re.sub(r"^(ty)?method\.|-\d+$", "", name))
        if tag == "pre" and ours and any("example-wrap" in around for _, around, _ in self.open):
            self.code.append("")
            self.reading = len(self.open)
            self.own = self.own or not any("method-toggle" in around for _, around, _ in self.open)

    def handle_endtag(self, tag):
        while self.open:
            found = self.open.pop()[0] == tag
            if len(self.open) < self.reading:
                self.reading = 0
            if found:
                return

    def handle_data(self, data):
        if self.reading:
            self.code[-1] += data

    def within(self, *names):
        return any(name in names for _, _, name in self.open)

    def lacks(self):
        if not self.own:
            yield "an example"
        text = "\n".join(self.code)
        for method in self.methods:
            if not re.search(r"\b%s\b(::<[^(]*>)?\(" % re.escape(method), text):
                yield f"an example that calls `{method}`"


def main(root):
    pages = sorted(
        page
        for page in root.rglob("*.html")
        if page.name.split(".")[0] in {"struct", "enum", "trait", "fn", "macro", "union", "derive"}
        and 'http-equiv="refresh"' not in page.read_text()
    )
    if len(pages) < 20:
        sys.exit(f"{root} has only {len(pages)} pages: was the documentation made?")
    lacking = 0
    for page in pages:
        for what in Page(page.read_text()).lacks():
            print(f"{page.relative_to(root)} lacks {what}", file=sys.stderr)
            lacking += 1
    print(f"{len(pages)} pages, {lacking} examples missing")
    sys.exit(lacking > 0)


main(Path(sys.argv[1]))
