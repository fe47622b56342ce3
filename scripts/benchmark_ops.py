"""The tables of op_bench: products, convolutions and memory-bound ops, and products against PyTorch's. Used by benchmark_tables.py."""
from benchmark_markdown import Table, central, milliseconds, paragraph, spread, table, under
from benchmark_results import beside_alone, conditions, failures, last_runs, streaming, torch_way

PASSES = {"forward": "forward", "backward_input": "grad x", "backward_weight": "grad weight"}


def op_tables(lines):
    """The last run of each: one without PyTorch has none of its rows."""
    own, library = last_runs(lines)
    products = [line for line in own if line["op"] == "matmul"]
    convolutions = [line for line in own if line["op"] == "conv2d"]
    memory = [line for line in own if line["op"] not in ("matmul", "conv2d")]
    kinds = ((product_table, products), (conv_table, convolutions), (memory_table, memory))
    made = under(conditions(own, "op_bench"), [make(chosen) for make, chosen in kinds if chosen]) if own else []
    return made + ([library_table(library)] if library else [])


def product_table(lines):
    rows = [[line["shape"], milliseconds(line["tessera_ms"]), f"{line['gflops']:.0f}", f"{line['peak_share']:.2f}",
             spread(line["ratio"]), line["rival"]["name"], central(line["blocked_ratio"])] for line in lines]
    text = ("Matrix products (m x n x k, row-major) against the fastest direct oneDNN calls on the same tensors; the last column "
            "is against operands that oneDNN packed beforehand.")
    head = ["shape", "ms", "GFLOP/s", "of FMA peak", "oneDNN / tessera", "oneDNN's way", "packed / tessera"]
    return Table("matrix products", lines, paragraph(text) + table(head, rows) + beside_alone(lines, dense_case))


def conv_table(lines):
    by_shape = {}
    for line in lines:
        by_shape.setdefault(line["shape"], {})[line["pass"]] = line
    rows = []
    for shape, passes in by_shape.items():
        found = [passes.get(name) for name in PASSES]
        rows.append([shape] + [spread(line["ratio"]) if line else "" for line in found] +
                    [" / ".join(f"{line['peak_share']:.2f}" if line else "-" for line in found),
                     " / ".join(central(line["blocked_ratio"]) if line else "-" for line in found)])
    text = ("Convolutions (NHWC) against the fastest direct oneDNN calls from and to the same tensors, reorders included: "
            "oneDNN's time over ours for the forward pass of training, whose weights change from call to call, and both "
            "gradients; then ours as a share of the multiply-add peak, and oneDNN's time in its blocked layouts without any "
            "reorder over ours.")
    head = ["shape", "forward", "grad x", "grad weight", "of FMA peak", "blocked / tessera"]
    return Table("convolutions", lines, paragraph(text) + table(head, rows) + beside_alone(lines, dense_case))


def memory_table(lines):
    rows = [[f"{line['op']} {line['pass']}", line["shape"], milliseconds(line["tessera_ms"]), f"{line['gbytes_per_second']:.1f}",
             spread(line["ratio"])] for line in lines]
    text = ("Memory-bound ops on operands that no cache holds: bytes that the op must move over its time, as a share of the "
            f"streaming bandwidth in the same rounds ({streaming(lines)}). Its passes write as much as they read; an op "
            "that reads more than it writes, like sgd, may be above 1.")
    head = ["op", "shape", "ms", "GB/s", "of streaming"]
    if all("share_of_same_traffic" in line.value for line in lines):  # lines from before it was measured have none
        text += " The last column holds each against a loop that reads and writes as many arrays and computes nothing."
        head.append("of the same traffic")
        rows = [row + [spread(line["share_of_same_traffic"])] for row, line in zip(rows, lines)]
    return Table("memory-bound ops", lines, paragraph(text) + table(head, rows) +
                 beside_alone(lines, lambda line: f"{line['op']} {line['pass']}"))


def library_table(lines):
    rows = [[line["shape"], milliseconds(line["tessera_ms"]), f"{line['gflops']:.0f}", milliseconds(line["torch_ms"]),
             spread(line["ratio"]), torch_way(line, line["torch_settings"]["mode"])] for line in lines]
    version = lines[-1]["torch"]["version"]
    text = (f"The same products against PyTorch {version}'s in the fastest of its ways: into new memory or that of the call before, or as "
            "a linear layer; malloc, instruction set, threads and what these do while they wait. " + failures(lines) +
            conditions(lines, "op_bench"))
    return Table(f"matrix products, PyTorch {version}", lines, paragraph(text) +
                 table(["shape", "tessera ms", "GFLOP/s", "PyTorch ms", "PyTorch / tessera", "PyTorch's way"], rows) +
                 beside_alone(lines, dense_case))


def dense_case(line):
    kind = "matrix product" if line["op"] == "matmul" else "convolution"
    step = "" if line["op"] == "matmul" else f", {PASSES[line['pass']]}"
    return f"{kind} {line['shape']}{step}"
