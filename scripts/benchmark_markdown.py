"""How numbers, prose and tables are written in Markdown. Used by benchmark_tables.py."""
import textwrap
from typing import NamedTuple


class Table(NamedTuple):
    """A table of docs/benchmarks.md: what it is called, the result lines that it shows, how it is written."""
    name: str
    lines: list
    text: list


def milliseconds(summary):
    return f"{summary['median']:.3g}" if summary["median"] < 100 else f"{summary['median']:.0f}"


def of_medians(ratio):
    """Behind the median of the rounds' ratios: the ratio of the medians, which lines without rounds do not have."""
    return f"; {ratio['of_medians']:.2f}" if "of_medians" in ratio else ""


def central(ratio):
    return f"{ratio['median']:.2f}{of_medians(ratio)}"


def spread(ratio):
    return f"{ratio['median']:.2f} ({ratio['p10']:.2f}-{ratio['p90']:.2f}){of_medians(ratio)}"


def paragraph(text):
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False) + [""]


def under(text, tables):
    """The tables, the first of them behind a paragraph on all."""
    return [made._replace(text=paragraph(text) + made.text) if i == 0 else made for i, made in enumerate(tables)]


def table(head, rows):
    """Markdown; the first column is text, the others are numbers."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)] + [""]
