"""The tables of attention_bench: alone and sparse, and against PyTorch's. Used by benchmark_tables.py."""
from benchmark_markdown import Table, milliseconds, paragraph, spread, table
from benchmark_results import beside_alone, conditions, failures, last_runs, torch_way, verdict


def attention_tables(lines):
    """The last run of each: one without PyTorch has none of its rows."""
    own, library = last_runs(lines)
    return ([own_table(own)] if own else []) + ([library_table(library)] if library else [])


def mebibytes(line, key):
    return f"{line[key] / 2**20:.1f}" if key in line.value else ""


def is_sparse(line):
    return "rival" in line.value


def own_table(lines):
    rows = [[line["format"], line["shape"], milliseconds(line["tessera_ms"]), f"{line['peak_share']:.2f}",
             milliseconds(line["rival"]["ms"]) if is_sparse(line) else "", spread(line["ratio"]) if is_sparse(line) else "",
             verdict(line), f"{line['pair_ratio']:.2f}" if is_sparse(line) else "", mebibytes(line, "memory_bytes"),
             mebibytes(line, "dense_memory_bytes"), mebibytes(line, "pattern_bytes")] for line in lines]
    sparse = [line for line in lines if is_sparse(line)]
    text = ("Causal attention, f32, a forward and backward of one sequence. \"Of peak\" is the share of the multiply-add peak by seven "
            "products of the pairs that are seen. " +
            (f"Sparse patterns have a band of {sparse[-1]['band']} keys and, of the pairs beside it, the share {sparse[-1]['density']:g}; "
             "the rival is our dense attention, which has so many times the pairs. " if sparse else "") +
            "Memory is what a step has at most beside its operands, gradients included. " + conditions(lines, "attention_bench"))
    head = ["pattern", "sequence", "ms", "of peak", "dense ms", "dense / sparse", "target", "pairs", "MiB", "dense MiB", "pattern MiB"]
    return Table("attention", lines, paragraph(text) + table(head, rows) + beside_alone(lines, attention_case))


def library_table(lines):
    rows = [[line["shape"], milliseconds(line["tessera_ms"]), milliseconds(line["torch_ms"]), spread(line["ratio"]),
             torch_way(line, line["torch_settings"]["mode"])] for line in lines]
    text = (f"The dense one against PyTorch {lines[-1]['torch']['version']}'s in the fastest of its ways: scaled_dot_product_attention "
            "on operands as they lie or with heads first, or products around a softmax; malloc, instruction set, what waiting threads "
            "do. " + failures(lines) + conditions(lines, "attention_bench"))
    return Table(f"attention, PyTorch {lines[-1]['torch']['version']}", lines, paragraph(text) +
                 table(["sequence", "tessera ms", "PyTorch ms", "PyTorch / tessera", "PyTorch's way"], rows) +
                 beside_alone(lines, attention_case))


def attention_case(line):
    return f"attention, {line['format']}, {line['shape']}, {line['phase']}"
