#!/usr/bin/env python3
"""scripts/onednn_versions: the shapes that it reads, what it refuses, and a comparison of the system's oneDNN with itself."""
import importlib.machinery
import importlib.util
import json
import pathlib
import subprocess
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "onednn_versions"
LOADER = importlib.machinery.SourceFileLoader("onednn_versions", str(SCRIPT))
VERSIONS = importlib.util.module_from_spec(importlib.util.spec_from_loader("onednn_versions", LOADER))
LOADER.exec_module(VERSIONS)


def run(*words):
    return subprocess.run([SCRIPT, *words], capture_output=True, text=True, check=False)


class Shapes(unittest.TestCase):
    def test_names_of_convolutions_become_numbers(self):
        for shape, numbers in (("8x56x56x64 -> 64, 3x3", "8 56 64 64 3 1 1"), ("8x224x224x3 -> 64, 7x7, stride 2", "8 224 3 64 7 2 1"),
                               ("8x14x14x512 -> 512, 3x3, depthwise", "8 14 512 512 3 1 512"),
                               ("8x14x14x32 -> 64, 3x3, stride 2, 4 groups", "8 14 32 64 3 2 4")):
            self.assertEqual(VERSIONS.conv_numbers(shape), numbers)
        with self.assertRaisesRegex(SystemExit, "shape of unknown form, '8x3'"):
            VERSIONS.conv_numbers("8x3")

    def test_every_row_of_op_bench_is_there_in_both_types(self):
        cases = VERSIONS.case_lines()
        self.assertGreaterEqual(len(cases), 2 * 54)
        self.assertEqual(cases["bf16 matmul 128x64x576 forward"], "product bf16 128 64 576")


class Comparison(unittest.TestCase):
    def test_of_the_system_with_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            results = pathlib.Path(folder) / "results.jsonl"
            done = run("/usr", "--rounds", "2", "--only", "128x64x576", "--results", results)
            self.assertEqual(done.returncode, 0, done.stderr)
            lines = [json.loads(line) for line in results.read_text(encoding="utf-8").splitlines()]
        left_out = done.stdout.count("left out, a version has only plain loops")  # bf16 on a processor without AVX-512
        rows = ["f32 matmul 128x64x576 forward", "bf16 matmul 128x64x576 forward"]
        self.assertEqual([line["row"] for line in lines], rows[: 2 - left_out])
        for line in lines:
            self.assertEqual(line["system"], line["other"])
            self.assertGreater(line["ratio"]["of_medians"], 0)
            self.assertIn("processor", line)
        self.assertIn("f32: 1 rows, geometric mean", done.stdout)

    def test_what_it_cannot_do_is_refused(self):
        for words, why in ((("/usr", "--rounds", "1"), "--rounds is 1; needs 2 or more"), (("/no/such",), "/no/such has no include/"),
                           (("/usr", "--only", "9x9x9"), "--only '9x9x9' is in no row")):
            done = run(*words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(why, done.stderr)


if __name__ == "__main__":
    unittest.main()
