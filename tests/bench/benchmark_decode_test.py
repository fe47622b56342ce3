#!/usr/bin/env python3
"""The tables that scripts/benchmark_tables.py makes of decode_bench and of compressed networks."""
import unittest

from benchmark_lines import SURROUNDINGS, TablesCase, mlps, summary, train


def decode(ratio, **changes):
    return SURROUNDINGS | {"model": "gpt2", "batch": 1, "shape": "256 tokens in the cache", "precision": "f32", "target": 1.05,
                           "tessera_ms": summary(14.0), "torch_ms": summary(16.0), "ratio": summary(ratio), "tokens_per_second": 71.4,
                           "stream_ratio": summary(0.92), "stream_target": 0.9, "torch_sweep": [],
                           "torch": {"version": "2.15", "threads": 2},
                           "torch_settings": {"mode": "eager", "wait_policy": "passive"}} | changes


class DecodeTables(TablesCase):
    def test_a_row_has_what_it_is_held_against(self):
        bf16 = decode(1.5, precision="bf16", f32_ratio=summary(1.7), f32_target=1.8)
        del bf16["target"], bf16["stream_target"]
        self.results("decode_bench", decode(0.5), decode(1.25), bf16)
        text = self.written()
        self.assertIn("| gpt2, f32, 256 tokens in the cache, batch 1 | 14 | 71 | 16 | 1.25 (1.15-1.35) | 1.05: met | 0.92, 0.9: met |  "
                      "| eager, 2 threads, passive wait |\n", text)
        self.assertIn("| 1.50 (1.40-1.60) |  | 0.92 | 1.70, 1.8: missed | eager, 2 threads, passive wait |\n", text)
        self.assertNotIn("0.50 (", text)

    def test_the_caption_says_which_ways_of_pytorch_took_part(self):
        swept = {"rounds": 15, "sweep_runs": 3}
        self.results("decode_bench", decode(1.25, command="decode_bench --python python --ways compiled --only f32", **swept))
        self.assertIn("swept in 3 forwards or more each, those alone whose name has 'compiled'.", self.prose())
        self.results("decode_bench", decode(1.25, command="decode_bench --python python", **swept))
        self.assertIn("swept in 3 forwards or more each.", self.prose())

    def test_compressed_networks_have_a_table_behind_those_against_pytorch(self):
        self.results("decode_bench", mlps("decoding", 1.25), decode(1.5))
        self.results("train_bench", mlps("training", 1.75), train(1.25))
        text = self.written()
        self.assertIn("| gpt2, MLPs in tile of 64, decoding, 256 tokens, batch 1 | 15 | 10 | 1.25 (1.15-1.35) | 1.35: missed |\n", text)
        self.assertIn("| gpt2, MLPs in tile of 64, training, 256 tokens, batch 1 | 15 | 10 | 1.75 (1.65-1.85) | 1.35: met |\n", text)
        self.assertLess(text.index("| run 1 |"), text.index("| gpt2, MLPs in tile of 64, training"))
        self.assertLess(text.index("| gpt2, f32"), text.index("| gpt2, MLPs in tile of 64, decoding"))

    def test_a_training_step_has_columns_for_what_was_measured_beside_it(self):
        self.results("train_bench", train(1.75, model="gpt", shape="256 tokens", optimizer="AdamW", target=1.6, peak_share=0.631,
                                          share_target=0.65, memory_ratio=0.8, beyond_state_ratio=0.7, memory_target=0.75))
        text = self.written()
        self.assertIn("| memory | target | of FMA peak | beyond what both keep | PyTorch's way |\n", text)
        self.assertIn("| 1.75 (1.65-1.85) | 0.80 | 1.6: met | 0.63, 0.65: missed | 0.70, 0.75: met | eager |\n", text)
        self.assertIn("256 tokens, f32, AdamW) against", self.prose())
        self.assertIn("what both keep are weights, gradients and moments.", self.prose())
        self.assertNotIn("imports", self.prose())

    def test_what_pytorch_imports_is_no_memory_of_a_step(self):
        line = train(1.75, torch={"version": "2.15"}, tessera_memory_kib=100000, torch_memory_kib=361336, memory_ratio=0.28,
                     state_kib=50000, beyond_state_ratio=0.16, memory_target=0.3)
        self.results("train_bench", line)
        self.assertIn("| 0.50 | 0.33, 0.3: missed | eager |\n", self.written())
        self.assertIn("held 158 MiB that it imports with its first optimiser; they are taken off.", self.prose())
        self.results("train_bench", line | {"torch": {"version": "2.15", "imported_first": True}})
        self.assertIn("| 0.28 | 0.16, 0.3: met | eager |\n", self.written())
        self.assertNotIn("imports", self.prose())

    def test_compare_tells_a_compressed_row_from_others(self):
        self.results("train_bench", mlps("training", 1.75), mlps("training", 1.75), train(1.0), train(1.0))
        code, text = self.compared()
        self.assertEqual(code, 0, text)
        self.assertIn("train_bench tile of 64 gpt2 1 256 tokens training: 1.75, 1.75: 0.0 %", text)


if __name__ == "__main__":
    unittest.main()
