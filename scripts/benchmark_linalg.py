"""The tables of linalg_bench: contractions, the copies of their rival, randomised decompositions. Used by benchmark_tables.py."""
from statistics import geometric_mean

from benchmark_markdown import Table, milliseconds, paragraph, spread, table, under
from benchmark_results import beside_alone, conditions, counted, last_run, streaming

FAIR_COPY = 0.8  # least share of the streaming bandwidth


def linalg_tables(lines):
    """The last run; a part of it may be missing: one without scikit-learn has none of its rows."""
    lines = last_run(lines)
    return under(conditions(lines, "linalg_bench"),
                 [make(chosen) for make, op in ((contract_table, "contract"), (permute_table, "permute"), (svd_table, "randomised_svd"))
                  if (chosen := linalg_lines(lines, op))])


def linalg_lines(lines, op):
    return [line for line in lines if line["op"] == op]


def contract_table(lines):
    sizes = list(dict.fromkeys(line["size"] for line in lines))
    by_equation = {}
    for line in lines:
        by_equation.setdefault(line["equation"], {})[line["size"]] = line
    rows = []
    for equation, found in by_equation.items():
        last = list(found.values())[-1]
        share = f"{last['permute_share']:.2f}" if "permute_share" in last.value else ""
        rows.append([f"`{equation}`", last["kind"], *(spread(found[size]["ratio"]) if size in found else "" for size in sizes),
                     str(last["copies"]), share])
    ratios = [counted(line["ratio"]) for line in lines if line.value.get("permute_share", 1) >= FAIR_COPY]
    mean = f"{geometric_mean(ratios):.2f}" if ratios else "not known"
    text = ("Contractions in f32. Both operands share one index, which is summed over; one operand has one free index, the other has "
            "two; all indices have one size. The rival copies the operands to matrices, runs one GEMM of the same library and copies the "
            f"result. A cell is its time over ours at that size. The geometric mean of the rows whose copies are fair is {mean}. "
            "The kind says how ours is planned: one GEMM, one batched GEMM, or with a copy. The last columns say how many tensors the "
            "rival copies, and which share of the streaming bandwidth such copies reach where no cache holds them: the least over their "
            "orders of axes, as in the next table.")
    return Table("contractions", lines, paragraph(text) +
                 table(["equation", "kind", *map(str, sizes), "copies", "of streaming"], rows) + beside_alone(lines, contract_case))


def permute_table(lines):
    rows = [[line["pass"], line["shape"], milliseconds(line["tessera_ms"]), f"{line['gbytes_per_second']:.1f}",
             spread(line["ratio"])] for line in lines]
    text = (f"The rival's copies, by the order of axes that they make: bytes read and written over the time, as a share of the "
            f"streaming bandwidth in the same rounds ({streaming(lines)}). Fair copies reach {FAIR_COPY}.")
    return Table("copies of contractions", lines, paragraph(text) + table(["order", "shape", "ms", "GB/s", "of streaming"], rows) +
                 beside_alone(lines, lambda line: f"{line['pass']} of {line['shape']}"))


def svd_table(lines):
    rows = [[f"{line['size']}x{line['size']}, {line['spectrum']}", str(line["rank"]), milliseconds(line["tessera"]["ms"]),
             milliseconds(line["rival"]["ms"]), spread(line["ratio"]), f"{line['tessera']['error']:.4f}",
             f"{line['rival']['error']:.4f}", spread(line["equal_work_ratio"])] for line in lines]
    text = (f"Randomised singular value decompositions against scikit-learn {lines[-1]['sklearn']['sklearn']}'s with its defaults, "
            "whose error ours must not pass by more than 1 %; errors are relative to the matrix. The last column is against "
            "scikit-learn with our oversampling and power iterations.")
    head = ["matrix, spectrum", "rank", "tessera ms", "scikit-learn ms", "scikit-learn / tessera", "our error", "its error",
            "equal work"]
    return Table("randomised SVD", lines, paragraph(text) + table(head, rows) + beside_alone(lines, svd_case))


def contract_case(line):
    return f"contraction `{line['equation']}`, size {line['size']}"


def svd_case(line):
    return f"randomised SVD, {line['size']}x{line['size']}, {line['spectrum']} spectrum, rank {line['rank']}"
