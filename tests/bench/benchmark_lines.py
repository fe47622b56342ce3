"""Small result lines of each program, and a checkout that scripts/benchmark_tables.py writes tables of them into."""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "benchmark_tables.py"
# Tables of `tessera reproduce`: README's, and those of docs/results.md.
REPRODUCED_IN_README = ("fashion_resnet20",)
REPRODUCED = ("cifar10_resnet20", "admm_resnet8", "sparse_resnet8", "gpt_shakespeare")


def markers(block):
    return f"<!-- {block}: begin, written by scripts/benchmark_tables.py -->", f"<!-- {block}: end -->"


BEGIN, END = markers("benchmarks")


def reproduced(table, text=""):
    """What of a page belongs to a table of `tessera reproduce`."""
    begin, end = markers(table)
    return f"{begin}\n{text}{end}\n"


SURROUNDINGS = {"commit": "abc1234", "date": "2026-01-02T03:04:05Z", "processor": "Some CPU", "compute_threads": 2,
                "omp_wait_policy": "passive", "onednn": "2.6.3 avx2", "compiler": "GNU 12.2.0", "build_type": "Release",
                "rounds": 30}


def summary(median):
    return {"median": median, "p10": median - 0.1, "p90": median + 0.1}


def train(ratio, **changes):
    return SURROUNDINGS | {"model": "resnet20", "batch": 128, "shape": "32x32x3", "torch": {"version": "1.13"},
                           "tessera_ms": summary(170.4),
                           "torch_ms": summary(220.6), "ratio": summary(ratio)} | changes


def infer(model, batch, ratio, version="1.13", **changes):
    return SURROUNDINGS | {"model": model, "batch": batch, "shape": "32x32x3", "torch": {"version": version},
                           "torch_settings": {"mode": "optimized"}, "tessera_ms": summary(0.604), "torch_ms": summary(1.5),
                           "ratio": summary(ratio)} | changes


def dense(op, shape, step, ratio, **changes):
    return SURROUNDINGS | {"op": op, "shape": shape, "pass": step, "tessera_ms": summary(1.234), "gflops": 201.4,
                           "peak_share": 0.87, "ratio": summary(ratio), "rival": {"name": "sgemm", "ms": summary(1.2)},
                           "blocked_ratio": summary(0.91)} | changes


def memory(op, step, share, **changes):
    return SURROUNDINGS | {"op": op, "shape": "[7, 512]", "pass": step, "tessera_ms": summary(20.5), "gbytes_per_second": 21.3,
                           "stream_gbytes_per_second": 30.1, "ratio": summary(share)} | changes


def factored(phase, ratio, **changes):
    return SURROUNDINGS | {"format": "tucker2", "shape": "8x14x14x256 -> 256, 3x3", "ranks": "out 64 in 32", "phase": phase,
                           "rival": {"name": "oneDNN: Winograd", "ms": summary(5.0)}, "factored": {"ms": summary(1.0)},
                           "ratio": summary(ratio), "flop_ratio": 8.47, "blocked_ratio": summary(4.4)} | changes


def library(phase, ratio, **changes):
    return SURROUNDINGS | {"format": "tt", "shape": "8x14x14x256 -> 256, 3x3", "phase": phase, "library": "TensorLy-Torch",
                           "ranks": "r1 16 r2 57 r3 56 r4 16", "library_ranks": "64 64 64", "parameters": 58168,
                           "library_parameters": 57344, "macs": 300, "library_macs": 300, "tessera_ms": summary(1.5),
                           "torch_ms": summary(3.0), "ratio": summary(ratio), "target": 1.2, "sweep_runs": 5,
                           "torch": {"version": "2.15", "tensorly_torch": "0.5.0", "threads": 2}, "torch_sweep": [],
                           "torch_settings": {"mode": "factorized-compiled", "wait_policy": "passive"}} | changes


def mlps(phase, ratio, **changes):
    return SURROUNDINGS | {"format": "tile of 64", "model": "gpt2", "batch": 1, "shape": "256 tokens", "precision": "f32",
                           "phase": phase, "rival": {"name": "tessera, dense", "ms": summary(15.0)},
                           "factored": {"ms": summary(10.0)}, "ratio": summary(ratio), "target": 1.35} | changes


def product_of_torch(ratio, **changes):
    return SURROUNDINGS | {"op": "matmul", "shape": "64x64x9", "pass": "forward", "library": "PyTorch", "tessera_ms": summary(2.0),
                           "torch": {"version": "2.15", "threads": 2}, "torch_ms": summary(3.0), "ratio": summary(ratio),
                           "gflops": 140.0, "fma_peak_gflops": 236.0, "torch_sweep": [],
                           "torch_settings": {"mode": "into", "wait_policy": "passive"}} | changes


class TablesCase(unittest.TestCase):
    """A folder with the pages, which have the markers that tables go between."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "bench" / "results").mkdir(parents=True)
        (self.root / "docs").mkdir()
        self.page = self.root / "docs" / "benchmarks.md"
        self.page.write_text(f"# title\n{BEGIN}\nold\n{END}\nafter\n")
        self.readme = self.root / "README.md"
        self.readme.write_text("# name\n" + "".join(reproduced(table, "old\n") for table in REPRODUCED_IN_README) +
                               f"between\n{BEGIN}\nold\n{END}\nbehind\n")
        self.reproduced_page = self.root / "docs" / "results.md"
        self.reproduced_page.write_text("".join(reproduced(table, "old\n") for table in REPRODUCED))

    def results(self, program, *lines):
        text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
        (self.root / "bench" / "results" / f"{program}.jsonl").write_text(text)

    def reproduced_results(self, tables):
        """What `tessera reproduce` writes for these tables, with their places among them as figures."""
        folder = self.root / "configs" / "tables" / "results"
        folder.mkdir(parents=True)
        for count, table in enumerate(tables):
            (folder / f"{table}.md").write_text(
                f"# {table}\n\n```\ntessera reproduce x.yaml\n```\n\n| arm | n |\n|---|---|\n| dense | {count} |\n\n"
                "![A picture](x.svg)\n\n"
                "- Is it? Undecided.\n\nMean of three.\n\n## Stage by stage\n\n| other |\n")

    def all_kinds(self, **changes):
        """A result of each kind that the README shows."""
        self.training(train(1.25, **changes), **changes)
        self.results("op_bench", dense("conv2d", "8x3 -> 4", "forward", 0.97, **changes), product_of_torch(1.5, **changes))

    def training(self, *lines, **changes):
        """Lines of train_bench beside those of its other kinds in the README."""
        self.results("train_bench", *lines, train(1.1, model="gpt2", **changes), mlps("training", 1.6, **changes))

    def run_script(self, *arguments):
        done = subprocess.run([sys.executable, SCRIPT, *arguments, self.root], capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    def written(self):
        self.assertEqual(self.run_script(), (0, ""))
        return self.page.read_text()

    def readme_rows(self):
        """What the README has of the results, without the head of its table."""
        self.assertEqual(self.run_script(), (0, ""))
        text = self.readme.read_text()
        return text[text.index(BEGIN) : text.index(END)].rstrip().split("\n")[4:]

    def prose(self):
        return " ".join(self.written().split())

    def compared(self):
        done = subprocess.run([sys.executable, SCRIPT, "--compare", self.root], capture_output=True, text=True, check=False)
        return done.returncode, done.stdout
