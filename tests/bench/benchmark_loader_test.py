#!/usr/bin/env python3
"""The table that scripts/benchmark_tables.py makes of loader_bench."""
import unittest

from benchmark_lines import SURROUNDINGS, TablesCase, summary


def loader(op, cores, ratio, **changes):
    return SURROUNDINGS | {"op": op, "cores": cores, "images": 256, "file": "JPEG 500x375, quality 90", "file_bytes": 81533,
                           "shape": "224x224x3", "target": 1.3, "tessera_ms": summary(800.0), "torch_ms": summary(1000.0),
                           "tessera_images_per_second": 320.0, "torch_images_per_second": 256.0, "ratio": summary(ratio),
                           "torch_settings": {"workers": 2},
                           "torch": {"version": "1.13", "torchvision": "0.14.1", "pillow": "9.4.0"}} | changes


class LoaderTable(TablesCase):
    def test_loader_has_a_row_for_each_frame_and_number_of_cores_of_the_last_run(self):
        self.results("loader_bench", loader("training", 1, 9.5, date="2026-01-01T00:00:00Z"), loader("training", 1, 1.25),
                     loader("evaluation", 2, 1.5))
        text = self.written()
        self.assertIn("| training | 1 | 320 | 256 | 1.25 (1.15-1.35) | 1.3: missed | 2 |\n"
                      "| evaluation | 2 | 320 | 256 | 1.50 (1.40-1.60) | 1.3: met | 2 |\n", text)
        self.assertIn("Files (JPEG 500x375, quality 90, 82 kB each) becoming normalised batches of 224x224x3, against torchvision "
                      "0.14.1 on Pillow 9.4.0", self.prose())
        self.assertNotIn("9.50", text)

    def test_rows_of_loader_are_compared_by_frame_and_cores(self):
        lines = [loader("training", 1, 1.25), loader("training", 2, 1.5)]
        self.results("loader_bench", *lines, *lines)
        self.assertEqual(self.compared(), (0, "loader_bench training 1: 1.25, 1.25: 0.0 %\n"
                                              "loader_bench training 2: 1.50, 1.50: 0.0 %\n"))


if __name__ == "__main__":
    unittest.main()
