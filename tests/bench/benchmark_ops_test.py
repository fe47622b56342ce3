#!/usr/bin/env python3
"""The tables that scripts/benchmark_tables.py makes of op_bench's rows against PyTorch; benchmark_tables_test.py has the others."""
import unittest

from benchmark_lines import TablesCase, dense, product_of_torch

LIBRARY = product_of_torch(1.5)
PRODUCT = dense("matmul", "64x64x9", "forward", 1.02)


class OpTables(TablesCase):
    def test_products_have_a_table_against_pytorch(self):
        self.results("op_bench", PRODUCT, LIBRARY)
        self.assertIn("| 64x64x9 | 2 | 140 | 3 | 1.50 (1.40-1.60) | into, 2 threads, passive wait |\n", self.written())
        self.assertIn("against PyTorch 2.15's", self.prose())

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
