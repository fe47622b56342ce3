#!/usr/bin/env python3
"""Writes the measured tables of docs/benchmarks.md, docs/results.md and README.md, each between two markers.

Usage: benchmark_tables.py [--check | --compare] [ROOT]
  --check    changes nothing; exit status 1 when a page is not what the committed results give
  --compare  changes nothing; of each row's lines at the newest commit and under the same conditions, prints how far the ratio
             that counts of the later half is from that of the earlier half, by their medians; exit status 1 when one is farther
             than 5 %, or when the lines of a row are odd in number: to compare needs two calls of scripts/bench
docs/benchmarks.md has all that bench/results/*.jsonl gives. Its tables show the last run of each program: the lines that share
its date. Of train_bench, whose run is one line, they show, for each network, precision and version of PyTorch, every line of the
last one's commit and conditions (processor, threads, builds: what is printed above the table); of infer_bench, for each version
of PyTorch, the last line of each network and batch among these; of sparse_bench the last line of each row, whatever its run.
A line from a changed checkout ("-dirty") is ignored, which is said. A program without results has no table.
A line that kept its rounds has two ratios: the median of the rounds' ratios and, behind it, the ratio of the medians; a verdict
counts the lower. A note under a table names the sides whose time in turns is more than 10 % from their time alone.
README.md has the worst row of five kinds, all of the newest commit at which each kind was measured, and a table of
`tessera reproduce`; docs/results.md has more of these.
Exit status: 0 written, current or in agreement, 1 not so, 2 a line or a page cannot be used.
"""
import argparse
import difflib
import functools
import operator
import os
import pathlib
import sys

from benchmark_attention import attention_tables
from benchmark_decode import compressed_case, compressed_table, decode_tables
from benchmark_linalg import linalg_tables
from benchmark_markdown import Table, central, milliseconds, paragraph, spread, table
from benchmark_ops import dense_case, op_tables
from benchmark_results import (Unusable, beside_alone, compare, compressed, conditions, counted, failures, imports_kib, infer_runs,
                               last_run, last_runs, newest_groups, precision_of, reached, results, torch_way, train_runs, verdict,
                               where, without_imports, without_rounds)
from benchmark_sparse import sparse_tables

REPRODUCED = "configs/tables/results"


NETWORKS = {"resnet18": "ResNet-18", "resnet20": "ResNet-20", "gpt": "a GPT of 4 layers, 128 wide, 4 heads",
            "gpt2": "GPT-2 small", "vit": "ViT-Ti/16"}


def train_mode(line):
    return "compiled" if line.value.get("torch_settings", {}).get("compiled") else "eager"


def train_way(line):
    return torch_way(line, train_mode(line))


def train_tables(lines):
    networks = newest_groups([line for line in lines if compressed(line)], "train_bench")
    return ([train_table(group) for group in train_runs(lines)] +
            [compressed_table(group, "train_bench") for group in networks])


# Columns that lines from before they were measured do not have.
TRAIN_COLUMNS = {"target": verdict,
                 "of FMA peak": lambda line: reached(line.value, "peak_share", "share_target"),
                 "beyond what both keep": lambda line: reached(without_imports(line), "beyond_state_ratio", "memory_target", operator.le)}


def train_table(lines):
    last = lines[-1]
    torch, precision = last["torch"], precision_of(last)
    columns = {head: cells for head, cell in TRAIN_COLUMNS.items() if any(cells := [cell(line) for line in lines])}
    rows = [[f"run {i + 1}", milliseconds(line["tessera_ms"]), milliseconds(line["torch_ms"]), spread(line["ratio"]),
             reached(without_imports(line), "memory_ratio", None), *(cells[i] for cells in columns.values()),
             train_way(line)] for i, line in enumerate(lines)]
    rival = f"{torch['version']}'s autocast" if precision == "bf16" else torch["version"]
    network = NETWORKS.get(last["model"], last["model"])
    text = (f"A training step of {network} (batch {last['batch']}, {last['shape']}, {precision}, {last.value.get('optimizer', 'SGD')}) "
            f"against PyTorch {rival} "
            "under the best of its settings for layout, malloc, instruction set, what waiting threads do and, where it can, "
            "compilation, from the same weights and with the same first losses. Memory is the peak that the steps added to the "
            "process, over the least that PyTorch adds under any of these settings" +
            ("; what both keep are weights, gradients and moments. " if "beyond what both keep" in columns else ". ") +
            (f"PyTorch's peak held {taken_off / 1024:.0f} MiB that it imports with its first optimiser; they are taken off. "
             if (taken_off := max(map(imports_kib, lines))) else "") +
            failures(lines) + conditions(lines, "train_bench"))
    head = ["", "tessera ms", "PyTorch ms", "PyTorch / tessera", "memory", *columns, "PyTorch's way"]
    return Table(f"training, {last['model']}, {precision}, PyTorch {torch['version']}", lines, paragraph(text) + table(head, rows) +
                 beside_alone(lines, lambda line: f"run {lines.index(line) + 1}"))


def infer_case(line):
    return f"{line['model']}, {line['shape']}, batch {line['batch']}"


def infer_tables(lines):
    parts = []
    for runs in infer_runs(lines):
        targets = {"target": [verdict(line) for line in runs]} if any(map(verdict, runs)) else {}
        rows = [[infer_case(line), milliseconds(line["tessera_ms"]), milliseconds(line["torch_ms"]), spread(line["ratio"]),
                 *(cells[i] for cells in targets.values()), torch_way(line, line["torch_settings"]["mode"])]
                for i, line in enumerate(runs)]
        version = runs[-1]["torch"]["version"]
        text = (f"Inference with batch norm folded into convolutions, f32, against PyTorch {version}, which folds too, in the "
                "fastest of its ways: layout, malloc, instruction set, what waiting threads do, for one image also one thread; "
                "eager, frozen, optimised and, where it knows it, compiled graphs. The weights are the same and the logits agree "
                "to 1e-4 of the largest. " +
                failures(runs) + conditions(runs, "infer_bench"))
        head = ["network", "tessera ms", "PyTorch ms", "PyTorch / tessera", *targets, "PyTorch's way"]
        parts.append(Table(f"inference, PyTorch {version}", runs,
                           paragraph(text) + table(head, rows) + beside_alone(runs, infer_case)))
    return parts


def factored_tables(lines):
    dense, library = last_runs(lines)
    return ([dense_rival_table(dense)] if dense else []) + ([library_table(library)] if library else [])


def beside_onednn(line):
    if "chain_ratio" in line.value:
        return reached(line.value, "chain_ratio", "chain_target")
    return central(line["blocked_ratio"]) if "blocked_ratio" in line else ""


def dense_rival_table(lines):
    kept = all(line.value.get("weights") == "constant" for line in lines if line["phase"] == "forward")
    rows = [[line["format"], line["shape"], line["ranks"], line["phase"], milliseconds(line["rival"]["ms"]),
             milliseconds(line["factored"]["ms"]), spread(line["ratio"]), verdict(line), f"{line['flop_ratio']:.2f}",
             beside_onednn(line)]
            for line in lines]
    text = ("Factored layers against the fastest dense one that computes the same, ours or oneDNN's, Winograd included; a batch of rows "
            "or images is part of the shape. Forward is inference: " +
            ("what either side derives from its weights is made once, before the timing. " if kept else
             "here each call of either side lays its weights out anew, though they are constant. ") +
            "Training is forward and both backwards. The last column is against oneDNN without our layouts: of a convolution the "
            "dense one in its blocked layout without reorders, of a network the same factors as its primitives, with biases, "
            "residuals and rectifiers inside them. " + conditions(lines, "factored_bench"))
    head = ["format", "dense", "ranks", "phase", "dense ms", "factored ms", "dense / factored", "target", "FLOP ratio",
            "oneDNN / factored"]
    return Table("factored layers", lines, paragraph(text) + table(head, rows) + beside_alone(lines, factored_case))


def library_table(lines):
    def both(line, key):
        ours, theirs = line[key], line[f"library_{key}"]
        return str(ours) if ours == theirs else f"{ours} / {theirs}"

    rows = [[f"{line['format']}, {line['library']}", line["shape"], both(line, "ranks"), both(line, "parameters"), both(line, "macs"),
             line["phase"], milliseconds(line["tessera_ms"]), milliseconds(line["torch_ms"]), spread(line["ratio"]), verdict(line),
             torch_way(line, line["torch_settings"]["mode"])] for line in lines]
    torch = lines[-1]["torch"]
    text = (f"Factored layers against TensorLy-Torch {torch['tensorly_torch']}'s, and of an svd two linear layers of PyTorch's, under "
            f"PyTorch {torch['version']} in the fastest of their ways: implementation, torch.compile, layout, malloc, instruction set, "
            "threads and what these do while they wait. Where two forms differ, ours stands before theirs: ranks, parameters, "
            "multiply-adds for a sample. Forward and training are as above. " + failures(lines) +
            conditions(lines, "factored_bench"))
    head = ["format, rival", "dense", "ranks", "parameters", "multiply-adds", "phase", "tessera ms", "rival ms", "rival / tessera", "target",
            "rival's way"]
    return Table("factored layers, TensorLy-Torch", lines, paragraph(text) + table(head, rows) + beside_alone(lines, factored_case))


def loader_tables(lines):
    """The last run: on one core, and on as many as it was told."""
    lines = last_run(lines)
    rows = [[line["op"], str(line["cores"]), f"{line['tessera_images_per_second']:.0f}", f"{line['torch_images_per_second']:.0f}",
             spread(line["ratio"]), verdict(line), str(line["torch_settings"]["workers"])] for line in lines]
    last = lines[-1]
    text = (f"Files ({last['file']}, {last['file_bytes'] / 1000:.0f} kB each) becoming normalised batches of {last['shape']}, against "
            f"torchvision {last['torch']['torchvision']} on Pillow {last['torch']['pillow']}, whose DataLoader has the best of 0, 1 and "
            "2 workers. Evaluated images have the same bytes. " + conditions(lines, "loader_bench"))
    head = ["frame", "cores", "tessera, images/s", "torchvision, images/s", "torchvision / tessera", "target", "its workers"]
    return [Table("image folder", lines, paragraph(text) + table(head, rows) + beside_alone(lines, loader_case))]


def outlet_case(line):
    return f"{line['network']}, batch {line['batch']}"


def outlet_tables(lines):
    """The last run. ONNX Runtime takes part where its interpreter was named."""
    lines = last_run(lines)
    rows = [[line["network"], str(line["batch"]), milliseconds(line["forward"]), milliseconds(line["c_interface"]),
             spread(line["ratio"]), verdict(line), *[spread(line[key]) if key in line else "" for key in
                                                     ("onnx_dense_ratio", "onnx_chains_ratio")],
             milliseconds(line["load_ms"])] for line in lines]
    versions = dict.fromkeys(line["onnx_runtime"]["onnxruntime"] for line in lines if "onnx_runtime" in line)
    beside = (f"ONNX Runtime {', '.join(versions)} runs the export of the dense network and, for a factored network, also the export "
              "of its chains. Its columns are its time over that of the C interface. " if versions else "")
    text = ("Networks behind the C interface against the forward in the library. " + beside +
            "Load is the time to read the file that `tessera export` writes. " + conditions(lines, "outlet_bench"))
    head = ["network", "batch", "forward ms", "C interface ms", "forward / C interface", "target", "ONNX Runtime, dense",
            "ONNX Runtime, chains", "load ms"]
    return [Table("C interface", lines, paragraph(text) + table(head, rows) + beside_alone(lines, outlet_case))]


TABLES = {"train_bench": train_tables, "infer_bench": infer_tables, "decode_bench": decode_tables, "op_bench": op_tables,
          "factored_bench": factored_tables, "linalg_bench": linalg_tables, "sparse_bench": sparse_tables,
          "attention_bench": attention_tables, "loader_bench": loader_tables, "outlet_bench": outlet_tables}


def tables_by_program(root):
    """All that was measured: the tables of each program that has results."""
    return {program: make(lines) for program, make in TABLES.items() if (lines := results(root, program))}


def tables(root):
    made = tables_by_program(root)
    shown = {program: [line for each in tables_of for line in each.lines] for program, tables_of in made.items()}
    return without_rounds(shown) + [row for tables_of in made.values() for each in tables_of for row in each.text]


def train_case(line):
    network = NETWORKS.get(line["model"], line["model"])
    return f"training step, {network}, {line['shape']}, batch {line['batch']}"


def loader_case(line):
    return f"images for {line['op']}, {line['cores']} {'core' if line['cores'] == 1 else 'cores'}"


def factored_case(line):
    return f"{line['format']}, ranks {line['ranks']}, of {line['shape']}, {line['phase']}"


def torch_row(line, case, mode):
    return case, f"PyTorch {line['torch']['version']}, {mode}", line["tessera_ms"], line["torch_ms"]


def kinds(lines_of):
    """What README shows the worst row of: the lines of each kind among those that `lines_of` gives for a program, and of a line what
    it is of, the rival, and the times of both."""
    steps = lines_of("train_bench")
    for model in ("resnet20", "gpt2"):
        groups = [group for group in train_runs(steps) if (group[-1]["model"], precision_of(group[-1])) == (model, "f32")]
        yield sum(groups, []), lambda line: torch_row(line, train_case(line), train_mode(line))
    yield sum(newest_groups([line for line in steps if compressed(line)], "train_bench"), []), lambda line: (
        compressed_case(line), line["rival"]["name"], line["factored"]["ms"], line["rival"]["ms"])
    own, library = last_runs(lines_of("op_bench"))
    yield [line for line in own if line["op"] == "conv2d"], lambda line: (
        dense_case(line), f"oneDNN, {line['rival']['name']}", line["tessera_ms"], line["rival"]["ms"])
    yield library, lambda line: torch_row(line, dense_case(line), line["torch_settings"]["mode"])


def newest_commits(lines):
    days = {}
    for line in lines:
        days[line["commit"]] = max(line["date"], days.get(line["commit"], ""))
    return sorted(days, key=days.get, reverse=True)


def worst_rows(root):
    """The row of each kind that is worst for us. All are of one commit: the newest at which each kind was measured."""
    def at(commit):
        return list(kinds(lambda program: [line for line in results(root, program) if line["commit"] == commit]))

    measured = (at(commit) for commit in newest_commits(results(root, "train_bench")))
    whole = next((each for each in measured if all(lines for lines, _ in each)), None)
    if whole is None:
        return []
    rows, shown = [], []
    for lines, describe in whole:
        line = min(lines, key=lambda line: counted(line["ratio"]))
        what, rival, ours, theirs = describe(line)
        rows.append([what, rival, milliseconds(ours), milliseconds(theirs), spread(line["ratio"]), str(len(lines))])
        shown.append(line)
    head = ["f32", "rival", "tessera ms", "rival ms", "rival / tessera", "worst of"]
    both = " The ratio of the medians follows the semicolon." if any("of_medians" in line["ratio"] for line in shown) else ""
    return table(head, rows) + paragraph(where(shown) + both)


def reproduced(root, page, table):
    """What `tessera reproduce` wrote down to its second heading: arms, picture and answers, without name and command."""
    path = root / REPRODUCED / f"{table}.md"
    if not path.is_file():
        return []
    text = path.read_text(encoding="utf-8").split("\n## ")[0]
    begin = text.find("\n|") + 1
    if begin == 0 or "cells have a result." in text:
        raise Unusable(f"{REPRODUCED}/{table}.md: is not whole; run 'tessera reproduce' to its end")
    folder = os.path.relpath(path.parent, (root / page).parent)
    return [line.replace("](", f"]({folder}/") if line.startswith("![") else line
            for line in text[begin:].rstrip().splitlines()] + [""]


def reproduced_on(page, *names):
    return {name: functools.partial(reproduced, page=page, table=name) for name in names}


# What is written: for each page the blocks between its markers.
PAGES = {"README.md": reproduced_on("README.md", "fashion_resnet20") | {"benchmarks": worst_rows},
         "docs/results.md": reproduced_on("docs/results.md", "cifar10_resnet20", "admm_resnet8", "sparse_resnet8", "gpt_shakespeare"),
         "docs/benchmarks.md": {"benchmarks": tables}}


def updated(page, lines, name, text):
    """The page's lines with everything between the block's markers replaced."""
    begin, end = f"<!-- {name}: begin, written by scripts/benchmark_tables.py -->", f"<!-- {name}: end -->"
    if lines.count(begin) != 1 or lines.count(end) != 1 or lines.index(begin) > lines.index(end):
        raise Unusable(f"{page}: needs the line '{begin}' and behind it '{end}', once each")
    return lines[: lines.index(begin)] + [begin, "", *text, end] + lines[lines.index(end) + 1 :]


def changes(root):
    """For each page that is not current: its lines, and what they should be."""
    found = {}
    for page, blocks in PAGES.items():
        before = (root / page).read_text(encoding="utf-8").splitlines()
        after = before
        for name, make in blocks.items():
            after = updated(page, after, name, make(root))
        if before != after:
            found[page] = (before, after)
    return found


def run(root, check):
    found = changes(root)
    for page, (before, after) in found.items():
        if check:
            difference = "\n".join(difflib.unified_diff(before, after, page, "from the results", lineterm=""))
            print(f"benchmark_tables: {page} is not what the results give; run scripts/benchmark_tables.py\n{difference}",
                  file=sys.stderr)
        else:
            (root / page).write_text("\n".join(after) + "\n", encoding="utf-8")
    return 1 if check and found else 0


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
