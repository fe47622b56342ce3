#!/usr/bin/env python3
"""scripts/stale_tables.py on a repository of a few files: which tables are current, which files count, what it cannot use."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

TESTS = pathlib.Path(__file__).resolve().parents[1]
SCRIPT = TESTS.parent / "scripts" / "stale_tables.py"
sys.path.insert(0, str(TESTS / "bench"))

from benchmark_lines import dense, infer, train  # noqa: E402

FILES = ("core/ops/relu.cpp", "layers/conv2d.cpp", "optim/sgd.cpp", "admm/rule.cpp", "docs/page.md", "bench/turns.cpp",
         "bench/op_bench.cpp", "bench/infer_bench.cpp", "bench/infer_bench_torch.py", "core/cuda/kernel/a.h", "core/ops/relu.cu",
         "core/README.md", "configs/tables/small/arm.yaml", "configs/tables/small/full.yaml", "configs/tables/shared/arm.yaml",
         "configs/tables/other.yaml", "cmake/flags.cmake", "CMakePresets.json")
ARMS = "arms:\n  - {name: a, experiment: small/arm.yaml}\n  - name: b\n    experiment: shared/arm.yaml\n    set: [a=1]\n"


@unittest.skipUnless(shutil.which("git"), "needs git")
class StaleTables(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name in FILES:
            self.change(name, "first\n")
        self.change("configs/tables/small.yaml", ARMS)
        self.git("init", "--quiet")
        self.commit = self.commit_all()

    def git(self, *words):
        done = subprocess.run(["git", "-C", self.root, "-c", "user.name=a", "-c", "user.email=a@b", *words], check=True,
                              capture_output=True, text=True)
        return done.stdout.strip()

    def commit_all(self):
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "Change")
        return self.git("rev-parse", "--short", "HEAD")

    def change(self, name, text="changed\n"):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def results(self, program, *lines):
        self.change(f"bench/results/{program}.jsonl", "".join(json.dumps(line) + "\n" for line in lines))

    def reproduced(self, name, *commits):
        rows = [{"cells": [{"commit": commit} for commit in commits]}]
        self.change(f"configs/tables/results/{name}.json", json.dumps({"name": name, "rows": rows}))

    def listed(self, status):
        done = subprocess.run([sys.executable, SCRIPT, self.root], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        return done.stderr if status == 2 else done.stdout.splitlines()

    def test_a_table_is_current_until_what_it_depends_on_changes(self):
        self.results("op_bench", dense("matmul", "64x64x9", "forward", 1.02, commit=self.commit))
        line = f"op_bench: matrix products: {self.commit}: "
        self.assertEqual(self.listed(0), [line + "current"])
        self.change("core/ops/relu.cpp")
        self.assertEqual(self.listed(1), [line + "1 file changed"])
        self.commit_all()
        self.change("bench/turns.cpp")
        self.change("optim/sgd.cpp")
        self.assertEqual(self.listed(1), [line + "3 files changed"])
        self.change("core/ops/relu.cpp", "first\n")
        self.change("bench/turns.cpp", "first\n")
        self.change("optim/sgd.cpp", "first\n")
        self.assertEqual(self.listed(0), [line + "current"])

    def test_how_it_is_built_counts_and_so_do_new_files(self):
        self.results("op_bench", dense("matmul", "64x64x9", "forward", 1.02, commit=self.commit))
        for count, name in enumerate(("cmake/flags.cmake", "CMakePresets.json", "core/ops/new.cpp"), 1):
            self.change(name)
            self.assertEqual(self.listed(1), [f"op_bench: matrix products: {self.commit}: {count} file{'s' if count > 1 else ''} changed"])
        self.change(".gitignore", "core/ops/new.cpp\n")
        self.assertEqual(self.listed(1), [f"op_bench: matrix products: {self.commit}: 2 files changed"])

    def test_files_that_it_does_not_run_do_not_count(self):
        self.results("op_bench", dense("matmul", "64x64x9", "forward", 1.02, commit=self.commit))
        for name in ("layers/conv2d.cpp", "admm/rule.cpp", "docs/page.md", "bench/infer_bench.cpp", "bench/infer_bench_torch.py",
                     "core/cuda/kernel/a.h", "core/ops/relu.cu", "core/README.md"):
            self.change(name)
        self.commit_all()  # with the results
        self.results("op_bench", dense("matmul", "64x64x9", "forward", 1.03, commit=self.commit))
        self.assertEqual(self.listed(0), [f"op_bench: matrix products: {self.commit}: current"])
        self.change("bench/op_bench.cpp")
        self.assertEqual(self.listed(1), [f"op_bench: matrix products: {self.commit}: 1 file changed"])

    def test_each_table_has_a_line_and_a_commit_of_its_own(self):
        self.change("layers/conv2d.cpp")
        newer = self.commit_all()
        self.results("train_bench", train(1.25, commit=self.commit), train(1.5, model="resnet18", commit=newer))
        self.results("infer_bench", infer("resnet20", 1, 2.5, commit=newer))
        self.results("op_bench", dense("matmul", "64x64x9", "forward", 1.02, commit=self.commit),
                     dense("conv2d", "8x3 -> 4", "forward", 0.97, commit=self.commit))
        self.assertEqual(self.listed(1), [
            f"train_bench: training, resnet20, f32, PyTorch 1.13: {self.commit}: 1 file changed",
            f"train_bench: training, resnet18, f32, PyTorch 1.13: {newer}: current",
            f"infer_bench: inference, PyTorch 1.13: {newer}: current",
            f"op_bench: matrix products: {self.commit}: current",
            f"op_bench: convolutions: {self.commit}: current"])

    def test_a_reproduced_table_depends_on_its_experiments_too(self):
        self.reproduced("small", self.commit, self.commit)
        self.change("configs/tables/other.yaml")
        self.change("configs/tables/small/full.yaml")  # of no arm
        self.assertEqual(self.listed(0), [f"small: {self.commit}: current"])
        for count, name in enumerate(("admm/rule.cpp", "configs/tables/small/arm.yaml", "configs/tables/shared/arm.yaml",
                                      "configs/tables/small.yaml"), 1):
            self.change(name, ARMS + "# changed\n" if name.endswith("small.yaml") else "changed\n")
            self.assertEqual(self.listed(1), [f"small: {self.commit}: {count} file{'' if count == 1 else 's'} changed"])

    def test_a_table_of_several_commits_counts_a_file_that_differs_from_any(self):
        self.change("core/ops/relu.cpp")
        newer = self.commit_all()
        self.reproduced("small", f"{newer}-dirty", self.commit, newer)
        self.assertEqual(self.listed(1), [f"small: {newer}-dirty, {self.commit}, {newer}: 1 file changed"])
        self.reproduced("small", f"{newer}-dirty")
        self.assertEqual(self.listed(0), [f"small: {newer}-dirty: current"])

    def test_a_program_without_a_table_has_a_line_of_its_last_run(self):
        self.results("veto_bench", {"commit": "abc1234", "date": "2026-01-01T00:00:00Z"},
                     {"commit": self.commit, "date": "2026-01-02T00:00:00Z"})
        self.assertEqual(self.listed(0), [f"veto_bench: {self.commit}: current"])
        self.change("layers/conv2d.cpp")
        self.assertEqual(self.listed(1), [f"veto_bench: {self.commit}: 1 file changed"])

    def test_a_commit_that_is_not_there_is_told(self):
        self.reproduced("small", "0123abc")
        self.assertEqual(self.listed(1), ["small: 0123abc: the commit is not in this repository"])

    def test_what_cannot_be_used_is_an_error(self):
        self.change("configs/tables/results/small.json", "{")
        self.assertIn("small.json: not JSON", self.listed(2))
        self.change("configs/tables/results/small.json", "{}")
        self.assertIn("small.json: names no commit", self.listed(2))
        self.change("bench/results/op_bench.jsonl", "{}\n")
        self.assertIn("op_bench.jsonl:1: there is no key 'commit'", self.listed(2))

    def test_every_program_whose_tables_are_written_has_its_folders(self):
        sys.path.insert(0, str(SCRIPT.parent))
        import benchmark_tables  # pylint: disable=import-outside-toplevel
        import stale_tables  # pylint: disable=import-outside-toplevel
        self.assertEqual(set(stale_tables.DEPENDS),
                         {*benchmark_tables.TABLES, *stale_tables.UNTABLED, benchmark_tables.REPRODUCED})
        for folders in stale_tables.DEPENDS.values():
            for folder in folders:
                self.assertTrue((TESTS.parent / folder).exists(), folder)


if __name__ == "__main__":
    unittest.main()
