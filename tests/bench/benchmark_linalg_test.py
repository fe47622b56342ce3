#!/usr/bin/env python3
"""The tables that scripts/benchmark_tables.py makes of linalg_bench."""
import unittest

from benchmark_lines import SURROUNDINGS, TablesCase, memory, summary


def contract(equation, size, ratio, **changes):
    return SURROUNDINGS | {"op": "contract", "equation": equation, "kind": "batched", "size": size, "copies": 2,
                           "contract": {"ms": summary(1.5)}, "rival": {"name": "copies and one GEMM", "ms": summary(3.0)},
                           "ratio": summary(ratio), "permute_share": 0.84} | changes


def svd(size, ratio, **changes):
    return SURROUNDINGS | {"op": "randomised_svd", "size": size, "rank": 15, "spectrum": "flat",
                           "tessera": {"ms": summary(2.0), "error": 0.91234},
                           "rival": {"name": "scikit-learn, defaults", "ms": summary(9.0), "error": 0.91567},
                           "ratio": summary(ratio), "equal_work_ratio": summary(3.3), "sklearn": {"sklearn": "1.2.1"}} | changes


class LinalgTables(TablesCase):
    def test_linalg_has_a_row_for_each_equation_and_a_column_for_each_size(self):
        self.results("linalg_bench", contract("a,b->c", 8, 9.5, date="2026-01-01T00:00:00Z"), contract("km,pkn->pnm", 8, 2.0),
                     contract("km,pkn->pnm", 256, 1.25, permute_share=0.84),
                     {key: value for key, value in contract("kp,knm->pnm", 8, 1.6, kind="gemm", copies=0).items()
                      if key != "permute_share"},
                     memory("permute", "210", 0.84), svd(512, 4.5))
        text = self.written()
        self.assertIn("| equation | kind | 8 | 256 | copies | of streaming |\n", text)
        self.assertIn("| `km,pkn->pnm` | batched | 2.00 (1.90-2.10) | 1.25 (1.15-1.35) | 2 | 0.84 |\n"
                      "| `kp,knm->pnm` | gemm | 1.60 (1.50-1.70) |  | 0 |  |\n", text)
        self.assertIn("the rows whose copies are fair is 1.59.", self.prose())
        self.assertIn("| 210 | [7, 512] | 20.5 | 21.3 | 0.84 (0.74-0.94) |\n", text)
        self.assertIn("| 512x512, flat | 15 | 2 | 9 | 4.50 (4.40-4.60) | 0.9123 | 0.9157 | 3.30 (3.20-3.40) |\n", text)
        self.assertIn("against scikit-learn 1.2.1's", self.prose())
        self.assertNotIn("9.50", text)

    def test_contractions_whose_rival_copies_too_slowly_are_no_part_of_the_mean(self):
        self.results("linalg_bench", contract("km,pkn->pnm", 8, 2.0), contract("mk,kpn->pnm", 8, 8.0, permute_share=0.79))
        self.assertIn("the rows whose copies are fair is 2.00.", self.prose())
        self.results("linalg_bench", contract("mk,kpn->pnm", 8, 8.0, permute_share=0.79))
        self.assertIn("the rows whose copies are fair is not known.", self.prose())

    def test_a_run_of_linalg_without_scikit_learn_has_the_other_tables(self):
        self.results("linalg_bench", contract("km,pkn->pnm", 8, 2.0))
        self.assertIn("| `km,pkn->pnm` |", self.written())
        self.assertNotIn("scikit-learn", self.prose())

    def test_rows_of_linalg_are_compared_by_what_they_are_of(self):
        lines = [contract("km,pkn->pnm", 8, 2.0), memory("permute", "210", 0.84), svd(512, 4.5)]
        self.results("linalg_bench", *lines, *lines)
        self.assertEqual(self.compared(), (0, "linalg_bench contract km,pkn->pnm 8: 2.00, 2.00: 0.0 %\n"
                                              "linalg_bench permute [7, 512] 210: 0.84, 0.84: 0.0 %\n"
                                              "linalg_bench randomised_svd flat 512: 4.50, 4.50: 0.0 %\n"))


if __name__ == "__main__":
    unittest.main()
