#!/usr/bin/env python3
"""Writes the README's benchmark tables from bench/results/*.jsonl, between two markers.

Usage: benchmark_tables.py [--check | --compare] [ROOT]
  --check    changes nothing; exit status 1 when the README is not what the committed results give
  --compare  changes nothing; of each row's lines at the newest commit and under the same conditions, prints how far the median
             ratio of the later half is from that of the earlier half; exit status 1 when one is farther than 5 %, or when the
             lines of a row are odd in number: to compare needs two calls of scripts/bench
Tables show the last run of each program: the lines that share its date. Of train_bench, whose run is one line, they show, for
each network, precision and version of PyTorch, every line of the last one's commit and conditions (processor, threads, builds:
what is printed above the table); of infer_bench, for each version of PyTorch, the last line of each network and batch among
these. A line from a changed checkout ("-dirty") is ignored, which is said. A program without results has no table.
Exit status: 0 written, current or in agreement, 1 not so, 2 a line or the README cannot be used.
"""
import argparse
import difflib
import pathlib
import sys
import textwrap

from benchmark_results import Unusable, compare, conditions, failures, results, same, span, train_key

BEGIN = "<!-- benchmarks: begin, written by scripts/benchmark_tables.py -->"
END = "<!-- benchmarks: end -->"
PASSES = ("forward", "backward_input", "backward_weight")


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


NETWORKS = {"resnet18": "ResNet-18", "resnet20": "ResNet-20"}


def torch_way(line, mode):
    """The rival's mode, threads and what these do while they wait, which is not what ours do."""
    settings = line.value.get("torch_settings", {})
    if "wait_policy" not in settings:  # from before there was a choice
        return mode
    threads = line["torch"]["threads"]
    return f"{mode}, {threads} thread{'' if threads == 1 else 's'}, {settings['wait_policy']} wait"


def train_way(line):
    return torch_way(line, "compiled" if line.value.get("torch_settings", {}).get("compiled") else "eager")


def train_tables(lines):
    """A table for each network, precision and version of PyTorch, in the order of their first lines."""
    groups = {}
    for line in lines:  # lines without a precision are from before there was a choice
        groups.setdefault(train_key(line), []).append(line)
    return sum((train_table(key[1], group) for key, group in groups.items()), [])


def train_table(precision, lines):
    lines = same(lines)
    last = lines[-1]
    torch = last["torch"]
    rows = [[f"run {i}", milliseconds(line["tessera_ms"]), milliseconds(line["torch_ms"]), spread(line["ratio"]),
             f"{line['memory_ratio']:.2f}" if "memory_ratio" in line.value else "", train_way(line)]
            for i, line in enumerate(lines, 1)]
    rival = f"{torch['version']}'s autocast" if precision == "bf16" else torch["version"]
    network = NETWORKS.get(last["model"], last["model"])
    text = (f"A training step of {network} (batch {last['batch']}, {last['shape']}, {precision}, SGD) against PyTorch {rival} "
            "under the best of its settings for layout, malloc, instruction set, what waiting threads do and, where it can, "
            "compilation, from the same weights and with the same first losses. Memory is the peak that the steps added to the "
            "process, over the least that PyTorch adds under any of these settings. " + failures(lines) +
            conditions(lines, "train_bench"))
    return paragraph(text) + table(["", "tessera ms", "PyTorch ms", "PyTorch / tessera", "memory", "PyTorch's way"], rows)


def infer_tables(lines):
    """A table for each version of PyTorch, from its last line of each network and batch."""
    parts = []
    for version in dict.fromkeys(line["torch"]["version"] for line in lines):
        runs = same([line for line in lines if line["torch"]["version"] == version])
        last = {(line["model"], line["batch"]): line for line in runs}
        rows = [[f"{model}, {line['shape']}, batch {batch}", milliseconds(line["tessera_ms"]), milliseconds(line["torch_ms"]),
                 spread(line["ratio"]), torch_way(line, line["torch_settings"]["mode"])] for (model, batch), line in last.items()]
        text = (f"Inference with batch norm folded into convolutions, f32, against PyTorch {version}, which folds too, in the "
                "fastest of its ways: layout, malloc, instruction set, what waiting threads do, for one image also one thread; "
                "eager, frozen, optimised and, where it knows it, compiled graphs. The weights are the same and the logits agree "
                "to 1e-4 of the largest. " +
                failures(last.values()) + conditions(list(last.values()), "infer_bench"))
        parts += paragraph(text) + table(["network", "tessera ms", "PyTorch ms", "PyTorch / tessera", "PyTorch's way"], rows)
    return parts


def product_tables(lines):
    rows = [[line["shape"], milliseconds(line["tessera_ms"]), f"{line['gflops']:.0f}", f"{line['peak_share']:.2f}",
             spread(line["ratio"]), line["rival"]["name"], f"{line['blocked_ratio']['median']:.2f}"] for line in lines]
    text = ("Matrix products (m x n x k, row-major) against the fastest direct oneDNN calls on the same tensors; the last column "
            "is against operands that oneDNN packed beforehand.")
    head = ["shape", "ms", "GFLOP/s", "of FMA peak", "oneDNN / tessera", "oneDNN's way", "packed / tessera"]
    return paragraph(text) + table(head, rows)


def conv_tables(lines):
    by_shape = {}
    for line in lines:
        by_shape.setdefault(line["shape"], {})[line["pass"]] = line
    rows = []
    for shape, passes in by_shape.items():
        found = [passes.get(name) for name in PASSES]
        rows.append([shape] + [spread(line["ratio"]) if line else "" for line in found] +
                    [" / ".join(f"{line['peak_share']:.2f}" if line else "-" for line in found),
                     " / ".join(f"{line['blocked_ratio']['median']:.2f}" if line else "-" for line in found)])
    text = ("Convolutions (NHWC) against the fastest direct oneDNN calls from and to the same tensors, reorders included: "
            "oneDNN's time over ours for the forward pass of training, whose weights change from call to call, and both "
            "gradients; then ours as a share of the multiply-add peak, and oneDNN's time in its blocked layouts without any "
            "reorder over ours.")
    head = ["shape", "forward", "grad x", "grad weight", "of FMA peak", "blocked / tessera"]
    return paragraph(text) + table(head, rows)


def streaming(lines):
    """What set the pace of memory; the fastest pass may differ between rows."""
    passes = " or ".join(dict.fromkeys(line["stream"] for line in lines if "stream" in line.value))
    rates = span([line["stream_gbytes_per_second"] for line in lines], ".1f", " to ")
    return f"y = a x{': ' if passes else ''}{passes}, {rates} GB/s"


def memory_tables(lines):
    rows = [[f"{line['op']} {line['pass']}", line["shape"], milliseconds(line["tessera_ms"]), f"{line['gbytes_per_second']:.1f}",
             spread(line["ratio"])] for line in lines]
    text = ("Memory-bound ops on operands that no cache holds: bytes that the op must move over its time, as a share of the "
            f"streaming bandwidth in the same rounds ({streaming(lines)}). Its passes write as much as they read; an op "
            "that reads more than it writes, like sgd, may be above 1.")
    return paragraph(text) + table(["op", "shape", "ms", "GB/s", "of streaming"], rows)


def op_tables(lines):
    lines = same(lines, "date")
    parts = [paragraph(conditions(lines, "op_bench"))]
    products = [line for line in lines if line["op"] == "matmul"]
    convolutions = [line for line in lines if line["op"] == "conv2d"]
    memory = [line for line in lines if line["op"] not in ("matmul", "conv2d")]
    for make, chosen in ((product_tables, products), (conv_tables, convolutions), (memory_tables, memory)):
        if chosen:
            parts.append(make(chosen))
    return sum(parts, [])


def verdict(line):
    if "target" not in line.value:
        return ""
    return f"{line['target']:g}: {'met' if line['ratio']['median'] >= line['target'] else 'missed'}"


def tucker_tables(lines):
    lines = same(lines, "date")
    kept = all(line.value.get("weights") == "constant" for line in lines if line["phase"] == "forward")
    rows = [[f"{line['rank_out']} / {line['rank_in']}, {line['phase']}", milliseconds(line["rival"]["ms"]),
             milliseconds(line["tucker"]["ms"]), spread(line["ratio"]), verdict(line), f"{line['flop_ratio']:.2f}",
             f"{line['blocked_ratio']['median']:.2f}"] for line in lines]
    text = (f"A Tucker-2 convolution (dense: {lines[-1]['shape']}) against the fastest dense one that computes the same, ours or "
            "oneDNN's, Winograd included. Forward is inference: " +
            ("what either side derives from its weights is made once, before the timing. " if kept else
             "here each call of either side lays its weights out anew, though they are constant. ") +
            "Training is forward and both backwards. The last column is against a dense convolution in oneDNN's blocked layout "
            "without reorders. " + conditions(lines, "tucker_bench"))
    head = ["ranks out / in", "dense ms", "tucker ms", "dense / tucker", "target", "FLOP ratio", "blocked / tucker"]
    return paragraph(text) + table(head, rows)


TABLES = {"train_bench": train_tables, "infer_bench": infer_tables, "op_bench": op_tables, "tucker_bench": tucker_tables}


def render(root):
    text = []
    for program, make in TABLES.items():
        lines = results(root, program)
        if lines:
            text += make(lines)
    return [BEGIN, "", *text, END]


def updated(readme, block):
    """The README's lines with everything from marker to marker replaced."""
    if readme.count(BEGIN) != 1 or readme.count(END) != 1 or readme.index(BEGIN) > readme.index(END):
        raise Unusable(f"README.md: needs the line '{BEGIN}' and behind it '{END}', once each")
    return readme[: readme.index(BEGIN)] + block + readme[readme.index(END) + 1 :]


def run(root, check):
    path = root / "README.md"
    before = path.read_text(encoding="utf-8").splitlines()
    after = updated(before, render(root))
    if check and before != after:
        difference = "\n".join(difflib.unified_diff(before, after, "README.md", "from bench/results", lineterm=""))
        print(f"benchmark_tables: README.md is not what bench/results gives; run scripts/benchmark_tables.py\n{difference}",
              file=sys.stderr)
        return 1
    if not check and before != after:
        path.write_text("\n".join(after) + "\n", encoding="utf-8")
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    task = parser.add_mutually_exclusive_group()
    task.add_argument("--check", action="store_true")
    task.add_argument("--compare", action="store_true")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    try:
        if options.compare:
            return 0 if compare(options.root) else 1
        return run(options.root, options.check)
    except (Unusable, OSError) as error:
        print(f"benchmark_tables: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
