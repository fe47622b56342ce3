"""The tables of sparse_bench: layers against dense ones, products against PyTorch's CSR. Used by benchmark_tables.py."""
from benchmark_markdown import Table, central, milliseconds, paragraph, spread, table
from benchmark_results import beside_alone, by_rival, conditions, failures, newest_groups, precision_of, reached, torch_way, verdict


def sparse_tables(lines):
    """A table for each set of conditions under which rows of either rival were last measured."""
    dense, library = sparse_groups(lines)
    return [dense_table(group) for group in dense] + [library_table(group) for group in library]


def sparse_groups(lines):
    return tuple(newest_groups(part, "sparse_bench") for part in by_rival(lines))


def matrix(line):
    """What is sparse, how it computes."""
    precision = precision_of(line)
    return line["format"] + ("" if precision == "f32" else f", {precision}")


def density(line):
    return f"{line['density']:.2g}" if "density" in line.value else ""


def share(timed):
    """Of the multiply-add peak. Networks have none."""
    return reached(timed, "peak_share", "share_target")


def passes(line):
    return " / ".join(filter(None, map(share, line.value.get("parts", []))))


def library_floor(line):
    """Milliseconds of as many multiply-adds in a dense product of oneDNN's. Convolutions have none."""
    return milliseconds(line["library_floor"]["ms"]) if "library_floor" in line.value else ""


def dense_table(lines):
    rows = [[matrix(line), line["shape"], density(line), line["phase"], milliseconds(line["rival"]["ms"]),
             milliseconds(line["factored"]["ms"]), library_floor(line), spread(line["ratio"]), verdict(line), share(line.value),
             passes(line), line["rival"]["name"]] for line in lines]
    held = lines[-1].value.get("held_to")
    text = ("Sparse layers against the fastest dense one that computes the same, ours or oneDNN's, Winograd included; a batch of rows "
            "or images is part of the shape, a density is what is kept. Forward is inference: what either side derives from its "
            "weights is made once, before the timing. Training is forward and both backwards. \"Of peak\" is the share of the "
            "multiply-add peak that the sparse layer reaches on the multiply-adds that are left; of training also that of each pass "
            "alone: forward / gradient of x / gradient of the values. \"As many, dense\" is oneDNN's dense product of as many "
            "multiply-adds, timed beside them: a row's kept elements side by side, so that no index is read. " +
            (f"All sides are held to {held.upper()}. " if held else "") + conditions(lines, "sparse_bench"))
    head = ["pattern", "layer", "density", "phase", "dense ms", "sparse ms", "as many, dense ms", "dense / sparse", "target", "of peak", "its passes",
            "dense way"]
    return Table("sparse layers" + (f", {held}" if held else ""), lines,
                 paragraph(text) + table(head, rows) + beside_alone(lines, sparse_case))


def library_table(lines):
    rows = [[matrix(line), line["shape"], density(line), milliseconds(line["tessera_ms"]), milliseconds(line["torch_ms"]),
             spread(line["ratio"]), verdict(line), torch_way(line, line["torch_settings"]["mode"]),
             central(line["aside_ratio"])] for line in lines]
    text = (f"Products of rows with a sparse matrix against PyTorch {lines[-1]['torch']['version']}'s of the same matrix in CSR form, "
            "in the fastest of its ways: x as it lies, or transposed inside or outside of the timing, indices of 32 or 64 bits, malloc, "
            "instruction set, what waiting threads do. The last column is its product with the dense matrix. " + failures(lines) +
            conditions(lines, "sparse_bench"))
    head = ["pattern", "layer", "density", "tessera ms", "PyTorch ms", "PyTorch / tessera", "target", "PyTorch's way",
            "its dense / tessera"]
    return Table(f"sparse products, PyTorch {lines[-1]['torch']['version']}", lines,
                 paragraph(text) + table(head, rows) + beside_alone(lines, sparse_case))


def sparse_case(line):
    return f"{line['format']}, density {density(line)}, of {line['shape']}, {line['phase']}"
