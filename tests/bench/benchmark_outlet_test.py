#!/usr/bin/env python3
"""The table that scripts/benchmark_tables.py makes of outlet_bench."""
import unittest

from benchmark_lines import SURROUNDINGS, TablesCase, summary


def outlet(network, batch, ratio, **changes):
    return SURROUNDINGS | {"network": network, "batch": batch, "forward": summary(10.0), "c_interface": summary(10.0),
                           "ratio": summary(ratio), "target": 0.95, "load_ms": summary(120.0)} | changes


class OutletTable(TablesCase):
    def test_outlet_has_a_row_for_each_network_and_batch_of_the_last_run(self):
        onnx = {"onnx_dense_ratio": summary(1.5), "onnx_runtime": {"onnxruntime": "1.32.0"}}
        self.results("outlet_bench", outlet("resnet18", 1, 9.5, date="2026-01-01T00:00:00Z"), outlet("resnet18", 1, 0.99, **onnx),
                     outlet("resnet18, tucker2", 32, 0.93, **onnx, onnx_chains_ratio=summary(0.7)), outlet("mlp", 1, 1.0))
        text = self.written()
        self.assertIn("| resnet18 | 1 | 10 | 10 | 0.99 (0.89-1.09) | 0.95: met | 1.50 (1.40-1.60) |  | 120 |\n"
                      "| resnet18, tucker2 | 32 | 10 | 10 | 0.93 (0.83-1.03) | 0.95: missed | 1.50 (1.40-1.60) | 0.70 (0.60-0.80) "
                      "| 120 |\n| mlp | 1 | 10 | 10 | 1.00 (0.90-1.10) | 0.95: met |  |  | 120 |\n", text)
        self.assertIn("ONNX Runtime 1.32.0 runs the export", self.prose())
        self.assertNotIn("9.50", text)

    def test_a_run_without_onnx_runtime_does_not_name_it(self):
        rounds = summary(10.0) | {"rounds": [9.0, 10.0, 11.0], "alone": 5.0}
        self.results("outlet_bench", outlet("resnet18", 1, 0.99, c_interface=rounds))
        self.written()
        self.assertNotIn("runs the export of the dense network", self.prose())
        self.assertNotIn("Older rows lack", self.prose())
        self.assertIn("resnet18, batch 1: c interface 2.00.", self.prose())

    def test_rows_of_outlet_are_compared_by_network_and_batch(self):
        lines = [outlet("resnet18", 1, 0.99), outlet("resnet18", 32, 1.0)]
        self.results("outlet_bench", *lines, *lines)
        self.assertEqual(self.compared(), (0, "outlet_bench resnet18 1: 0.99, 0.99: 0.0 %\n"
                                              "outlet_bench resnet18 32: 1.00, 1.00: 0.0 %\n"))


if __name__ == "__main__":
    unittest.main()
