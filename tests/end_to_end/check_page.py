#!/usr/bin/env python3
"""Checks a page of `tessera report`: tags that close, unique ids that are found where they are named, nothing loaded from
anywhere, frames that keys can scroll, SVGs that are XML with a title and a description. Prints how many elements of some kinds
there are.

Usage: check_page.py PAGE
"""
import html.parser
import json
import re
import sys
import xml.etree.ElementTree

VOID = {"meta", "br", "hr", "input", "col", "wbr"}
LOADING = {"link", "img", "iframe", "object", "embed", "source", "base", "form", "image", "use", "foreignObject"}
COUNTED = {"svg", "table", "tr", "polyline", "circle", "rect", "script", "style", "section", "details", "h2", "pre"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.problems, self.ids, self.named, self.counts = [], [], [], [], {}
        self.header_buttons = self.sortable_headers = 0

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag in LOADING:
            self.problems.append(f"<{tag}> may load something")
        for key, value in attributes:
            if key in ("src", "srcset", "action", "poster", "data") or key.startswith("on"):
                self.problems.append(f"<{tag} {key}>")
            if key == "href" and not value.startswith("#"):
                self.problems.append(f"href {value!r} leaves the page")
        if "id" in values:
            self.ids.append(values["id"])
        self.named += values.get("aria-labelledby", "").split()
        if "href" in values:
            self.named.append(values["href"][1:])
        self.sortable_headers += "aria-sort" in values
        self.header_buttons += tag == "button" and "th" in self.open
        scrolls = tag == "pre" or "scroll" in values.get("class", "").split()
        if scrolls and not (values.get("tabindex") == "0" and values.get("role") == "region" and values.get("aria-label")):
            self.problems.append(f"line {self.getpos()[0]}: <{tag}> scrolls, and has no tab stop or no label")
        if tag in COUNTED:
            self.counts[tag] = self.counts.get(tag, 0) + 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"line {self.getpos()[0]}: </{tag}> inside {self.open[-3:]}")
        else:
            self.open.pop()


def check_svg(text, problems):
    try:
        root = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError as error:
        problems.append(f"an SVG is not XML: {error}")
        return
    for name in ("title", "desc"):
        if not root.findtext(SVG + name):
            problems.append(f"an SVG has no {name}")
    if root.get("role") != "img" or not root.get("viewBox"):
        problems.append("an SVG has no role or no viewBox")
    numbers = [value for element in root.iter() for value in element.attrib.values()]
    if any(re.search(r"(^|[ ,(])-?(nan|inf)\b", value) for value in numbers):
        problems.append("an SVG has a number that is none")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    page = Page()
    page.feed(text)
    page.close()
    problems = page.problems + [f"<{tag}> is not closed" for tag in page.open]
    problems += [f"id {name} twice" for name in sorted({name for name in page.ids if page.ids.count(name) > 1})]
    problems += [f"no element has the id {name}" for name in sorted(set(page.named) - set(page.ids))]
    outside = re.sub(r'xmlns="http://www.w3.org/2000/svg"', "", text)
    problems += [f"names {found}" for found in re.findall(r"(?:https?:)?//[a-z][\w.]+\.\w+|@import|url\(", outside)]
    for svg in re.findall(r"<svg\b.*?</svg>", text, re.DOTALL):
        check_svg(svg, problems)
    if page.header_buttons != page.sortable_headers:
        problems.append(f"{page.sortable_headers} headers sort, {page.header_buttons} have a button")
    for needed in ('<meta name="viewport"', "prefers-color-scheme: dark", "@media print", '<html lang="en">'):
        if needed not in text:
            problems.append(f"{needed} is missing")
    print("\n".join(problems) if problems else json.dumps(page.counts, sort_keys=True))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
