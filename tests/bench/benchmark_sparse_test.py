#!/usr/bin/env python3
"""The tables that scripts/benchmark_tables.py makes of sparse_bench."""
import unittest

from benchmark_lines import SURROUNDINGS, TablesCase, summary


def sparse(phase, ratio, **changes):
    return SURROUNDINGS | {"format": "tile 64", "shape": "512x1024 -> 1024", "density": 0.2499, "precision": "f32", "phase": phase,
                           "rival": {"name": "oneDNN: matmul", "ms": summary(6.0)}, "factored": {"ms": summary(2.0)},
                           "ratio": summary(ratio), "peak_share": 0.504, "parts": []} | changes


def against_torch(ratio, version="1.13", **changes):
    return SURROUNDINGS | {"format": "unstructured", "shape": "1024x1024 -> 1024", "density": 0.1, "precision": "f32",
                           "phase": "forward", "library": "PyTorch CSR", "tessera_ms": summary(1.2), "torch_ms": summary(4.8),
                           "ratio": summary(ratio), "target": 2.5, "aside_ratio": summary(3.4), "torch_sweep": [],
                           "torch": {"version": version, "threads": 2},
                           "torch_settings": {"mode": "outside-int32", "wait_policy": "passive"}} | changes


def passes(*shares):
    return [{"name": "a pass", "peak_share": share} | ({"share_target": 0.45} if share < 0.5 else {}) for share in shares]


class SparseTables(TablesCase):
    def test_a_training_row_has_the_shares_of_its_passes(self):
        self.results("sparse_bench", sparse("forward", 3.25, target=3.0, share_target=0.45,
                                            library_floor={"name": "dense 512x256 -> 1024", "ms": summary(1.5)}),
                     sparse("training", 2.25, target=2.8, parts=passes(0.61, 0.45, 0.302)))
        text = self.written()
        self.assertIn("| tile 64 | 512x1024 -> 1024 | 0.25 | forward | 6 | 2 | 1.5 | 3.25 (3.15-3.35) | 3: met | 0.50, 0.45: met |  | "
                      "oneDNN: matmul |\n", text)
        self.assertIn("| training | 6 | 2 |  | 2.25 (2.15-2.35) | 2.8: missed | 0.50 | 0.61 / 0.45, 0.45: met / 0.30, 0.45: missed | "
                      "oneDNN: matmul |\n", text)

    def test_the_newest_line_of_each_row_is_shown_with_what_held_for_it(self):
        self.results("sparse_bench", sparse("forward", 1.25, commit="older00", date="2026-01-01T00:00:00Z"),
                     sparse("forward", 1.5, commit="older00", date="2026-01-01T00:00:00Z", density=0.5), sparse("forward", 3.25),
                     sparse("training", 2.25))
        text = self.prose()
        self.assertNotIn("1.25 (", text)
        self.assertIn("`sparse_bench` at older00, 2026-01-01: Some CPU", text)
        self.assertLess(text.index("| 1.50 (1.40-1.60) |"), text.index("`sparse_bench` at abc1234"))
        self.assertLess(text.index("`sparse_bench` at abc1234"), text.index("| 3.25 (3.15-3.35) |"))
        self.assertIn("| 2.25 (2.15-2.35) |", text)

    def test_lines_from_before_a_key_was_there_are_rows_too(self):
        old = sparse("training", 2.25)
        del old["precision"], old["parts"]
        self.results("sparse_bench", old, sparse("training", 1.25, precision="bf16"))
        self.assertIn("| tile 64 | 512x1024 -> 1024 | 0.25 | training | 6 | 2 |  | 2.25 (2.15-2.35) |  | 0.50 |  | oneDNN: matmul |\n"
                      "| tile 64, bf16 | 512x1024 -> 1024 | 0.25 | training | 6 | 2 |  | 1.25 (1.15-1.35) |", self.written())

    def test_a_network_has_neither_density_nor_share(self):
        network = sparse("forward", 1.5, shape="resnet18 1x224x224x3")
        del network["density"], network["peak_share"]
        self.results("sparse_bench", network)
        self.assertIn("| tile 64 | resnet18 1x224x224x3 |  | forward | 6 | 2 |  | 1.50 (1.40-1.60) |  |  |  | oneDNN: matmul |\n",
                      self.written())

    def test_rows_that_are_held_back_have_a_table_of_their_own(self):
        self.results("sparse_bench", sparse("forward", 3.25), sparse("forward", 2.25, held_to="avx2", kernel_isa="avx2"))
        text = self.prose()
        self.assertEqual(text.count("| tile 64 |"), 2)
        self.assertLess(text.index("3.25 ("), text.index("All sides are held to AVX2."))
        self.assertLess(text.index("own kernels avx2"), text.index("2.25 ("))

    def test_pytorch_has_a_table_for_each_version_behind_the_dense_layers(self):
        self.results("sparse_bench", against_torch(4.0), sparse("forward", 3.25), against_torch(1.5, version="2.15"),
                     against_torch(2.75))
        text = self.prose()
        self.assertIn("| unstructured | 1024x1024 -> 1024 | 0.1 | 1.2 | 4.8 | 2.75 (2.65-2.85) | 2.5: met | "
                      "outside-int32, 2 threads, passive wait | 3.40 |", text)
        self.assertIn("against PyTorch 1.13's", text)
        self.assertIn("against PyTorch 2.15's", text)
        self.assertIn("| 1.50 (1.40-1.60) | 2.5: missed |", text)
        self.assertNotIn("4.00 (", text)
        self.assertLess(text.index("3.25 ("), text.index("1.50 ("))

    def test_compare_knows_the_rows(self):
        earlier = {"date": "2026-01-01T00:00:00Z"}
        self.results("sparse_bench", sparse("forward", 2.0, **earlier), against_torch(4.0, **earlier), sparse("forward", 2.05),
                     against_torch(4.0))
        self.assertEqual(self.compared(), (0, "sparse_bench tile 64 0.25 512x1024 -> 1024 f32 forward : 2.00, 2.05: 2.5 %\n"
                                              "sparse_bench unstructured 0.1 1024x1024 -> 1024 f32 forward  PyTorch CSR 1.13: "
                                              "4.00, 4.00: 0.0 %\n"))


if __name__ == "__main__":
    unittest.main()
