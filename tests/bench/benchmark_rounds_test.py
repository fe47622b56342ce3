#!/usr/bin/env python3
"""scripts/benchmark_tables.py on lines that keep their rounds: both ratios, what a verdict counts, notes on times alone."""
import unittest

from benchmark_lines import TablesCase, dense, factored, infer, library, memory, product_of_torch, summary, train

OLD = "Older rows lack their rounds and the times alone:"
ONLY_ONE = "carry the median of the rounds' ratios and not the ratio of the medians."


def both(median, of_medians):
    return summary(median) | {"of_medians": of_medians}


def times(median, alone=None):
    return summary(median) | {"rounds": [median] * 3} | ({} if alone is None else {"alone": alone})


def kept(line, of_medians, **changes):
    """The line with its rounds."""
    ms = {key: times(value["median"]) for key, value in line.items() if key.endswith("_ms")}
    named = {key: value | {"ms": times(value["ms"]["median"])} for key, value in line.items()
             if isinstance(value, dict) and "ms" in value}
    return line | ms | named | {"ratio": both(line["ratio"]["median"], of_medians)} | changes


class Rounds(TablesCase):
    def test_both_ratios_are_printed_and_explained(self):
        self.results("train_bench", kept(train(1.25), 1.31))
        self.assertIn("| 1.25 (1.15-1.35); 1.31 |", self.written())
        self.assertIn("medians of 30 interleaved rounds, p10 to p90 in brackets, behind a semicolon the ratio of the medians "
                      "(a target counts the lower of the two).", self.prose())
        self.all_kinds()
        self.training(kept(train(1.25), 1.31))
        self.assertIn("| 1.25 (1.15-1.35); 1.31 | 1 |", self.readme_rows()[0])
        self.assertIn("The ratio of the medians follows the semicolon.", " ".join(self.readme.read_text().split()))
        self.training(train(1.25))
        self.assertIn("| 1.25 (1.15-1.35) |", self.written())
        for page in (self.page, self.readme):
            self.assertNotIn("semicolon", page.read_text())

    def test_one_paragraph_names_the_rows_without_rounds_and_those_with_one_ratio(self):
        self.results("infer_bench", kept(infer("resnet20", 1, 2.5), 2.4))
        self.assertNotIn("Older rows lack", self.prose())
        both_ratios = train(1.75, model="gpt", commit="fed8765")
        self.results("train_bench", train(1.25), kept(train(1.5, model="resnet18", commit="def5678"), 1.4),
                     both_ratios | {"ratio": both(1.75, 1.7)})
        self.results("op_bench", memory("relu", "forward", 0.5))
        self.assertIn(f"{OLD} those of `train_bench` at abc1234, fed8765; `op_bench` at abc1234. "
                      f"Those of `train_bench` at abc1234; `op_bench` at abc1234 {ONLY_ONE} A training", self.prose())
        self.assertEqual(self.prose().count("Older rows lack"), 1)

    def test_a_share_of_a_peak_has_no_other_ratio(self):
        alone = train(1.0) | {"format": "dense", "shape": "1x1024", "phase": "training", "peak_share": 0.6, "memory_bytes": 1,
                              "tessera_ms": times(3.0)}
        self.results("attention_bench", alone)
        self.assertNotIn("Older rows lack", self.prose())
        self.results("attention_bench", alone | {"tessera_ms": summary(3.0)})
        self.assertIn("those of `attention_bench` at abc1234.", self.prose())

    def test_a_target_counts_the_lower_of_the_two(self):
        for median, of_medians, said in ((5.5, 4.9, "5: missed"), (4.9, 5.5, "5: missed"), (5.1, 5.2, "5: met")):
            self.results("factored_bench", kept(factored("forward", median, target=5.0), of_medians))
            self.assertIn(f"| {median:.2f} ({median - 0.1:.2f}-{median + 0.1:.2f}); {of_medians:.2f} | {said} |", self.written())

    def test_ratios_without_a_spread_have_both_too(self):
        network = factored("forward", 1.5, chain_ratio=both(1.07, 0.98), chain_target=1.0)
        self.results("factored_bench", network)
        self.assertIn("| 1.07; 0.98, 1: missed |", self.written())
        self.results("op_bench", dense("matmul", "64x64x9", "forward", 1.02, blocked_ratio=both(0.91, 0.93)),
                     dense("conv2d", "8x3 -> 4", "forward", 0.97, blocked_ratio=both(0.81, 0.83)))
        self.assertIn("| sgemm | 0.91; 0.93 |", self.written())
        self.assertIn("| 0.81; 0.83 / - / - |", self.written())

    def test_the_worst_row_is_that_of_the_lower_ratio(self):
        self.all_kinds()
        self.results("op_bench", product_of_torch(1.1), kept(dense("conv2d", "8x3 -> 4", "forward", 1.5), 1.6),
                     kept(dense("conv2d", "8x3 -> 4", "backward_weight", 1.75), 1.25))
        self.assertIn("| 1.75 (1.65-1.85); 1.25 | 2 |", self.readme_rows()[3])

    def test_a_side_whose_turns_are_not_as_it_is_alone_is_noted_under_the_table(self):
        slowed = kept(infer("resnet20", 1, 2.5), 2.5, tessera_ms=times(0.6, 0.5), torch_ms=times(1.5, 1.4))
        faster = kept(infer("resnet20", 32, 2.5), 2.5, tessera_ms=times(0.6, 0.55), torch_ms=times(1.5, 1.7))
        self.results("infer_bench", slowed, faster)
        row = self.written().index("| resnet20, 32x32x3, batch 32 |")
        note = self.written().index("Sides whose time in turns")
        self.assertLess(row, note)
        self.assertIn("Sides whose time in turns is more than 10 % from their time alone, as time in turns over time alone: resnet20, 32x32x3, "
                      "batch 1: tessera 1.20; resnet20, 32x32x3, batch 32: PyTorch 0.88.", self.prose())

    def test_times_near_those_alone_are_not_noted(self):
        self.results("infer_bench", kept(infer("resnet20", 1, 2.5), 2.5, tessera_ms=times(0.6, 0.55), torch_ms=times(1.5, 1.6)))
        self.results("train_bench", kept(train(1.25), 1.25))
        self.assertNotIn("time alone", self.prose())

    def test_notes_name_the_sides_and_rows_of_each_table(self):
        self.results("train_bench", kept(train(1.25), 1.25), kept(train(1.25), 1.25, torch_ms=times(3.0, 2.0)))
        self.assertIn("as time in turns over time alone: run 2: PyTorch 1.50.", self.prose())
        self.results("train_bench")
        self.results("factored_bench", kept(factored("forward", 5.5), 5.5, rival={"name": "x", "ms": times(3.0, 2.0)}),
                     kept(library("forward", 2.0), 2.0, tessera_ms=times(3.0, 2.0)))
        self.assertIn("tucker2, ranks out 64 in 32, of 8x14x14x256 -> 256, 3x3, forward: rival 1.50.", self.prose())
        self.assertIn("tt, ranks r1 16 r2 57 r3 56 r4 16, of 8x14x14x256 -> 256, 3x3, forward: tessera 1.50.", self.prose())
        self.results("factored_bench")
        self.results("op_bench", kept(dense("matmul", "64x64x9", "forward", 1.02), 1.0, tessera_ms=times(3.0, 2.0)),
                     kept(memory("relu", "forward", 0.5), 0.5, stream_ms=times(3.0, 2.0)))
        self.assertIn("matrix product 64x64x9: tessera 1.50.", self.prose())
        self.assertIn("relu forward: stream 1.50.", self.prose())


if __name__ == "__main__":
    unittest.main()
