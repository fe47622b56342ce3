#!/usr/bin/env python3
"""The tables that scripts/benchmark_tables.py makes of op_bench's rows against PyTorch; benchmark_tables_test.py has the others."""
import unittest

from benchmark_lines import SURROUNDINGS, TablesCase, dense, summary

LIBRARY = SURROUNDINGS | {"op": "matmul", "shape": "64x64x9", "pass": "forward", "library": "PyTorch", "tessera_ms": summary(2.0),
                          "torch": {"version": "2.15", "threads": 2}, "torch_ms": summary(3.0), "ratio": summary(1.5),
                          "gflops": 140.0, "fma_peak_gflops": 236.0, "torch_sweep": [],
                          "torch_settings": {"mode": "into", "wait_policy": "passive"}}
PRODUCT = dense("matmul", "64x64x9", "forward", 1.02)


class OpTables(TablesCase):
    def test_products_have_a_table_against_pytorch(self):
        self.results("op_bench", PRODUCT, LIBRARY)
        self.assertIn("| 64x64x9 | 2 | 140 | 3 | 1.50 (1.40-1.60) | into, 2 threads, passive wait |\n", self.written())
        self.assertIn("against PyTorch 2.15's", self.prose())
        self.assertIn("| matrix product 64x64x9 | PyTorch 2.15, into | 2 | 3 | 1.50 (1.40-1.60) | 1 | abc1234 |", self.readme_rows())

    def test_a_run_without_pytorch_keeps_the_rows_of_an_earlier_one(self):
        early = {"date": "2026-01-01T00:00:00Z"}
        self.results("op_bench", dense("matmul", "64x64x9", "forward", 0.99, **early), LIBRARY | early, PRODUCT)
        text = self.written()
        self.assertIn("1.02", text)
        self.assertNotIn("0.99", text)
        self.assertIn("| into, 2 threads, passive wait |", text)

    def test_rows_are_compared_by_rival(self):
        self.results("op_bench", PRODUCT, LIBRARY, PRODUCT, LIBRARY)
        self.assertEqual(self.compared(), (0, "op_bench matmul 64x64x9 forward: 1.02, 1.02: 0.0 %\n"
                                              "op_bench matmul 64x64x9 forward PyTorch 2.15: 1.50, 1.50: 0.0 %\n"))


if __name__ == "__main__":
    unittest.main()
