#!/usr/bin/env python3
"""The tables that scripts/benchmark_tables.py makes of attention_bench."""
import unittest

from benchmark_lines import SURROUNDINGS, TablesCase, summary

DENSE = SURROUNDINGS | {"format": "dense", "shape": "1x4096, 8 heads of 64", "phase": "training", "memory_bytes": 40 << 20,
                        "tessera_ms": summary(318.0), "peak_share": 0.81, "gflops": 190.0, "fma_peak_gflops": 236.0,
                        "ratio": summary(0.81)}
SPARSE = DENSE | {"format": "elements", "band": 256, "density": 0.05, "pattern_bytes": 12 << 20, "dense_memory_bytes": 40 << 20,
                  "tessera_ms": summary(100.0), "rival": {"name": "tessera, dense", "ms": summary(300.0)}, "ratio": summary(3.0),
                  "pair_ratio": 6.06, "peak_share": 0.42, "target": 2.3}
LIBRARY = DENSE | {"library": "PyTorch", "torch": {"version": "2.15", "threads": 2}, "torch_ms": summary(636.0), "ratio": summary(2.0),
                   "torch_settings": {"mode": "as-is", "wait_policy": "passive"}, "torch_sweep": []}


class AttentionTables(TablesCase):
    def test_rows_of_our_own_and_of_pytorch_have_tables(self):
        self.results("attention_bench", DENSE, SPARSE, LIBRARY)
        text = self.written()
        self.assertIn("| dense | 1x4096, 8 heads of 64 | 318 | 0.81 |  |  |  |  | 40.0 |  |  |\n"
                      "| elements | 1x4096, 8 heads of 64 | 100 | 0.42 | 300 | 3.00 (2.90-3.10) | 2.3: met | 6.06 | 40.0 | 40.0 | 12.0 |\n",
                      text)
        self.assertIn("| 1x4096, 8 heads of 64 | 318 | 636 | 2.00 (1.90-2.10) | as-is, 2 threads, passive wait |\n", text)
        self.assertIn("a band of 256 keys and, of the pairs beside it, the share 0.05;", self.prose())
        self.assertIn("against PyTorch 2.15's", self.prose())

    def test_a_run_without_pytorch_keeps_the_rows_of_an_earlier_one(self):
        self.results("attention_bench", DENSE | {"date": "2026-01-01T00:00:00Z"}, LIBRARY | {"date": "2026-01-01T00:00:00Z"},
                     DENSE | {"peak_share": 0.77})
        text = self.written()
        self.assertIn("| dense | 1x4096, 8 heads of 64 | 318 | 0.77 |", text)
        self.assertNotIn("0.81", text)
        self.assertIn("| as-is, 2 threads, passive wait |", text)
        self.assertNotIn("a band of", self.prose())

    def test_rows_are_compared_by_pattern_sequence_and_library(self):
        self.results("attention_bench", DENSE, SPARSE, LIBRARY, DENSE, SPARSE, LIBRARY)
        self.assertEqual(self.compared(), (0, "attention_bench dense 1x4096, 8 heads of 64: 0.81, 0.81: 0.0 %\n"
                                              "attention_bench elements 1x4096, 8 heads of 64: 3.00, 3.00: 0.0 %\n"
                                              "attention_bench dense 1x4096, 8 heads of 64 PyTorch 2.15: 2.00, 2.00: 0.0 %\n"))


if __name__ == "__main__":
    unittest.main()
