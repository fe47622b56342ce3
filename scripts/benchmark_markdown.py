"""How numbers, prose and tables are written in Markdown. Used by benchmark_tables.py."""
import textwrap


def milliseconds(summary):
    return f"{summary['median']:.3g}" if summary["median"] < 100 else f"{summary['median']:.0f}"


def spread(summary):
    return f"{summary['median']:.2f} ({summary['p10']:.2f}-{summary['p90']:.2f})"


def paragraph(text):
    return textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False) + [""]


def table(head, rows):
    """Markdown; the first column is text, the others are numbers."""
    rule = ["---"] + ["---:"] * (len(head) - 1)
    return ["| " + " | ".join(cells) + " |" for cells in (head, rule, *rows)] + [""]
