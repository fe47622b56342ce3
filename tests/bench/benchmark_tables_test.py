#!/usr/bin/env python3
"""scripts/benchmark_tables.py on small results: which lines it shows, what it refuses, when it calls the pages current."""
import unittest

from benchmark_lines import (BEGIN, END, REPRODUCED, REPRODUCED_IN_README, TablesCase, dense, factored, infer, library,
                             markers, memory, mlps, product_of_torch, reproduced, summary, train)


class Tables(TablesCase):
    def test_no_results_leave_the_markers_and_what_is_around_them(self):
        self.assertEqual(self.written(), f"# title\n{BEGIN}\n\n{END}\nafter\n")
        self.assertEqual(self.readme.read_text(), "# name\n" + "".join(reproduced(table, "\n") for table in REPRODUCED_IN_README) +
                                                  f"between\n{BEGIN}\n\n{END}\nbehind\n")

    def test_the_readme_has_the_worst_row_of_each_kind(self):
        compiled = {"torch": {"version": "2.15"}, "torch_settings": {"compiled": True}}
        self.results("train_bench", train(1.1, commit="older00"), train(1.35), train(1.25), train(1.45),
                     train(1.15, precision="bf16"), train(1.5, **compiled), train(1.05, model="resnet18"),
                     train(2.0, model="gpt2", **compiled), mlps("training", 1.75), mlps("training", 1.5, format="svd"))
        self.results("op_bench", dense("matmul", "64x64x9", "forward", 0.5), memory("relu", "forward", 0.5),
                     dense("conv2d", "8x3 -> 4", "forward", 1.02), dense("conv2d", "8x3 -> 4", "backward_weight", 0.97),
                     product_of_torch(1.5), product_of_torch(1.25, shape="64x64x64"))
        self.assertEqual(self.readme_rows(), [
            "| training step, ResNet-20, 32x32x3, batch 128 | PyTorch 1.13, eager | 170 | 221 | 1.25 (1.15-1.35) | 4 |",
            "| training step, GPT-2 small, 32x32x3, batch 128 | PyTorch 2.15, compiled | 170 | 221 | 2.00 (1.90-2.10) | 1 |",
            "| gpt2, MLPs in svd, training, 256 tokens, batch 1 | tessera, dense | 10 | 15 | 1.50 (1.40-1.60) | 2 |",
            "| convolution 8x3 -> 4, grad weight | oneDNN, sgemm | 1.23 | 1.2 | 0.97 (0.87-1.07) | 2 |",
            "| matrix product 64x64x64 | PyTorch 2.15, into | 2 | 3 | 1.25 (1.15-1.35) | 2 |",
            "", "Measured 2026-01-02: Some CPU, 2 threads, at abc1234."])

    def test_the_readme_s_rows_are_of_the_newest_commit_that_has_each_kind(self):
        self.all_kinds()
        newer = {"commit": "def5678", "date": "2026-01-04T00:00:00Z"}
        self.training(train(1.25), train(1.75, **newer))
        rows = self.readme_rows()
        self.assertIn("1.25 (1.15-1.35)", rows[0])
        self.assertEqual(rows[-1], "Measured 2026-01-02: Some CPU, 2 threads, at abc1234.")
        self.assertIn("1.75 (1.65-1.85)", self.written())  # docs/benchmarks.md has the newest line of each program
        self.all_kinds(**newer)
        self.assertEqual(self.readme_rows()[-1], "Measured 2026-01-04: Some CPU, 2 threads, at def5678.")

    def test_the_readme_tells_all_days_and_machines_of_its_rows(self):
        self.all_kinds()
        self.training(train(1.25), date="2026-01-04T00:00:00Z", compute_threads=8)
        self.assertEqual(self.readme_rows()[-1],
                         "Measured 2026-01-02 to 2026-01-04: Some CPU, 2 threads; Some CPU, 8 threads, at abc1234.")

    def test_without_a_commit_that_has_each_kind_the_readme_has_no_rows(self):
        self.all_kinds()
        self.results("op_bench", dense("conv2d", "8x3 -> 4", "forward", 0.97, commit="def5678"))
        self.assertEqual(self.readme_rows(), [])

    def test_pages_have_the_reproduced_tables_with_their_pictures_and_answers(self):
        tables = REPRODUCED_IN_README + REPRODUCED
        self.reproduced_results(tables)
        self.written()
        for count, table in enumerate(tables):
            page, way = (self.readme, "") if table in REPRODUCED_IN_README else (self.reproduced_page, "../")
            self.assertIn(reproduced(table, f"\n| arm | n |\n|---|---|\n| dense | {count} |\n\n"
                                            f"![A picture]({way}configs/tables/results/x.svg)\n\n"
                                            "- Is it? Undecided.\n\nMean of three.\n\n"), page.read_text())

    def test_a_reproduced_table_must_be_whole(self):
        folder = self.root / "configs" / "tables" / "results"
        folder.mkdir(parents=True)
        for text in ("# admm_resnet8\n\nnothing\n", "# admm_resnet8\n\n| arm |\n|---|\n| a |\n\n1 of 3 cells have a result.\n"):
            (folder / "admm_resnet8.md").write_text(text)
            code, message = self.run_script()
            self.assertEqual(code, 2)
            self.assertIn("configs/tables/results/admm_resnet8.md: is not whole", message)

    def test_training_shows_the_lines_of_the_last_commit_and_machine(self):
        self.results("train_bench", train(1.5, commit="older00"), train(1.9, processor="Other CPU"), train(1.25), train(1.35))
        text = self.written()
        self.assertIn("| run 1 | 170 | 221 | 1.25 (1.15-1.35) |  | eager |\n"
                      "| run 2 | 170 | 221 | 1.35 (1.25-1.45) |  | eager |\n", text)
        self.assertNotIn("1.50", text)
        self.assertNotIn("1.90", text)
        for condition in ("abc1234", "2026-01-02", "Some CPU", "2 threads", "passive", "2.6.3 avx2", "PyTorch 1.13",
                          "30 interleaved"):
            self.assertIn(condition, " ".join(text.split()))

    def test_a_table_shows_lines_of_one_set_of_conditions(self):
        for key, other in (("build_type", "Debug"), ("omp_wait_policy", "active"), ("onednn", "2.6.3 avx512_core"),
                           ("kernel_isa", "avx512"), ("compiler", "GNU 13"), ("rounds", 8), ("compute_threads", 1),
                           ("steps_per_round", 17), ("sweep_steps", 19), ("sweep_runs", 23)):
            with self.subTest(key):
                self.results("train_bench", train(1.25, **{key: other}), train(1.35))
                text = self.prose()
                self.assertIn("1.35 (1.25-1.45)", text)
                self.assertNotIn("1.25 (1.15-1.35)", text)
                self.results("train_bench", train(1.25), train(1.35, **{key: other}))
                self.assertIn(str(other), self.prose())
                self.assertNotIn("1.25 (1.15-1.35)", self.prose())

    def test_the_peak_and_the_dates_are_ranges_over_the_rows(self):
        self.results("train_bench", train(1.25, fma_peak_gflops=301.2), train(1.3, fma_peak_gflops=176.9),
                     train(1.35, fma_peak_gflops=280.0, date="2026-01-03T00:00:00Z"))
        self.assertIn("at abc1234, 2026-01-02 to 2026-01-03: Some CPU", self.prose())
        self.assertIn("Release; multiply-add peak 177-301 GFLOP/s; medians", self.prose())
        self.results("train_bench", train(1.25, fma_peak_gflops=301.2), train(1.3, fma_peak_gflops=301.4))
        self.assertIn("multiply-add peak 301 GFLOP/s;", self.prose())

    def test_a_peak_of_other_threads_than_ours_is_left_out(self):
        alone = infer("resnet20", 1, 2.5, fma_peak_gflops=150.2, fma_peak_threads=1)
        self.results("infer_bench", alone, infer("resnet20", 32, 1.5, fma_peak_gflops=301.2, fma_peak_threads=2))
        self.assertIn("multiply-add peak 301 GFLOP/s;", self.prose())
        self.results("infer_bench", alone)
        self.assertNotIn("peak", self.prose())

    def test_the_effort_is_told(self):
        self.results("train_bench", train(1.25))
        self.assertIn("medians of 30 interleaved rounds, p10 to p90 in brackets.", self.prose())
        self.results("train_bench", train(1.25, steps_per_round=5, sweep_steps=6))
        self.assertIn("medians of 30 interleaved rounds of 5 steps, p10 to p90 in brackets; "
                      "PyTorch's settings swept in 6 steps each.", self.prose())
        self.results("train_bench")
        self.results("infer_bench", infer("resnet20", 1, 2.5, sweep_runs=3))
        self.assertIn("p10 to p90 in brackets; PyTorch's ways swept in 3 forwards or more each.", self.prose())

    def test_settings_of_torch_that_failed_are_counted(self):
        whole, partial = [{"ms": 1.0}] * 8, [{"failed": "no compiler"}] * 3 + [{"ms": 1.0}] * 5
        self.results("train_bench", train(1.25, torch_sweep=whole))
        self.assertNotIn("failed", self.prose())
        self.results("train_bench", train(1.25, torch_sweep=partial))
        self.assertIn(" 3 of 8 settings of PyTorch failed.", self.prose())
        self.assertNotIn("Up to", self.prose())
        self.results("train_bench", train(1.25, torch_sweep=partial), train(1.35, torch_sweep=whole))
        self.assertIn("Up to 3 of 8 settings of PyTorch failed.", self.prose())
        self.results("train_bench")
        self.results("infer_bench", infer("resnet20", 1, 2.5, torch_sweep=partial))
        self.assertIn(" 3 of 8 settings of PyTorch failed.", self.prose())

    def test_lines_of_a_changed_checkout_are_ignored_aloud(self):
        self.all_kinds()
        self.training(train(1.25), train(1.75, commit="abc1234-dirty"))
        code, message = self.run_script()
        self.assertEqual(code, 0)
        self.assertIn("train_bench.jsonl:2: ignored: no commit holds what abc1234-dirty was", message)
        self.assertEqual(message.count("ignored"), 1)
        for page in (self.page, self.readme):
            self.assertIn("1.25 (1.15-1.35)", page.read_text())
            self.assertNotIn("1.75", page.read_text())

    def test_compare_takes_the_medians_of_the_earlier_and_the_later_half_of_a_rows_lines(self):
        self.results("train_bench", train(3.0, rounds=8), train(1.0), train(5.0), train(1.1), train(1.14), train(1.12),
                     train(0.9), train(2.0, model="resnet18"), train(1.0, model="resnet18", commit="older00"),
                     train(2.05, model="resnet18"))
        self.assertEqual(self.compared(), (0, "train_bench resnet20 f32 128 32x32x3 1.13: 1.10, 1.12: 1.8 %\n"
                                              "train_bench resnet18 f32 128 32x32x3 1.13: 2.00, 2.05: 2.5 %\n"))
        self.assertIn("\nold\n", self.page.read_text())

    def test_compare_takes_the_lower_of_two_ratios(self):
        earlier, later = ({"median": 2.0, "p10": 1.8, "p90": 2.2, "of_medians": of_medians} for of_medians in (1.9, 1.5))
        self.results("train_bench", train(2.0) | {"ratio": earlier}, train(2.0) | {"ratio": later})
        self.assertEqual(self.compared(), (1, "train_bench resnet20 f32 128 32x32x3 1.13: 1.90, 1.50: 21.1 % APART, "
                                              "beyond the rounds' p10 to p90, 1.80 to 2.20\n"))

    def test_compare_refuses_rows_that_one_call_gave(self):
        row = "train_bench resnet20 f32 128 32x32x3 1.13: "
        for count, lines in ((1, "1 line"), (3, "3 lines")):
            self.results("train_bench", train(1.0, rounds=8), *[train(1.25)] * count)
            self.assertEqual(self.compared(), (1, f"{row}{lines}: needs two calls of scripts/bench\n"))

    def test_compare_says_whether_rows_that_are_apart_are_within_their_spread(self):
        row = "factored_bench tucker2 8x14x14x256 -> 256, 3x3 out 64 in 32 forward: "
        earlier = {"date": "2026-01-01T00:00:00Z"}
        self.results("factored_bench", factored("forward", 5.0, **earlier), factored("forward", 4.5))
        self.assertEqual(self.compared(),
                         (1, f"{row}5.00, 4.50: 10.0 % APART, beyond the rounds' p10 to p90, 4.65 to 4.85\n"))
        wide = {"median": 4.5, "p10": 3.9, "p90": 5.3}
        self.results("factored_bench", factored("forward", 5.0, **earlier), factored("forward", 4.5) | {"ratio": wide})
        self.assertEqual(self.compared(),
                         (1, f"{row}5.00, 4.50: 10.0 % APART, within the rounds' p10 to p90, 4.40 to 5.20\n"))

    def test_training_has_a_table_for_each_network_and_version_of_torch(self):
        self.results("train_bench", train(1.25, memory_ratio=0.95), train(1.5, model="resnet18", shape="224x224x3"),
                     train(1.75, torch={"version": "2.15"}))
        text = self.written()
        self.assertIn("| run 1 | 170 | 221 | 1.25 (1.15-1.35) | 0.95 | eager |\n\n", text)
        self.assertIn("A training step of ResNet-18 (batch 128, 224x224x3, f32, SGD)", " ".join(text.split()))
        self.assertIn("PyTorch 2.15", " ".join(text.split()))
        self.assertEqual(text.count("| run 1 |"), 3)

    def test_tables_say_how_pytorch_ran(self):
        self.results("train_bench", train(1.25, torch={"version": "1.13", "threads": 2},
                                          torch_settings={"compiled": True, "wait_policy": "default"}))
        self.assertIn("| 1.25 (1.15-1.35) |  | compiled, 2 threads, default wait |\n", self.written())
        self.results("train_bench")
        self.results("infer_bench", infer("resnet20", 1, 2.5, torch={"version": "1.13", "threads": 1},
                                          torch_settings={"mode": "frozen", "wait_policy": "passive"}))
        self.assertIn("| 2.50 (2.40-2.60) | frozen, 1 thread, passive wait |\n", self.written())

    def test_training_has_a_table_for_each_precision(self):
        self.results("train_bench", train(1.5, commit="older00"), train(2.5, precision="bf16"), train(1.25, precision="f32"))
        text = self.written()
        single, half = text.index("32x32x3, f32, SGD"), text.index("32x32x3, bf16, SGD")
        self.assertLess(single, text.index("1.25 (1.15-1.35)"))
        self.assertLess(text.index("1.25 (1.15-1.35)"), half)
        self.assertLess(half, text.index("2.50 (2.40-2.60)"))
        self.assertNotIn("1.50 (", text)
        self.assertIn("PyTorch 1.13's autocast", " ".join(text.split()))

    def test_inference_has_a_table_for_each_version_of_torch_with_the_last_line_of_each_case(self):
        self.results("infer_bench", infer("resnet20", 1, 3.5, commit="older00"), infer("resnet20", 1, 2.75),
                     infer("resnet20", 32, 1.25), infer("resnet20", 1, 2.5), infer("resnet20", 1, 1.5, version="2.15"))
        text = self.written()
        row = "| resnet20, 32x32x3, batch 1 | 0.604 | 1.5 | 2.50 (2.40-2.60) | optimized |\n"
        self.assertIn(row + "| resnet20, 32x32x3, batch 32 | 0.604 | 1.5 | 1.25 (1.15-1.35) | optimized |\n\n", text)
        self.assertIn("| resnet20, 32x32x3, batch 1 | 0.604 | 1.5 | 1.50 (1.40-1.60) | optimized |\n\n", text)
        self.assertIn("PyTorch 2.15", " ".join(text.split()))
        self.assertNotIn("target |", text)
        self.assertNotIn("3.50", text)
        self.assertNotIn("2.75", text)

    def test_inference_has_a_column_of_targets_where_there_are_any(self):
        self.results("infer_bench", infer("resnet20", 1, 2.5, target=1.1), infer("resnet20", 32, 1.05, target=1.1))
        text = self.written()
        self.assertIn("| PyTorch / tessera | target | PyTorch's way |\n", text)
        self.assertIn("| 2.50 (2.40-2.60) | 1.1: met | optimized |\n", text)
        self.assertIn("| 1.05 (0.95-1.15) | 1.1: missed | optimized |\n", text)

    def test_ops_show_the_last_run_one_row_for_each_convolution(self):
        self.results("op_bench", dense("matmul", "1x2x3", "forward", 2.5, date="2026-01-01T00:00:00Z"),
                     dense("matmul", "64x64x9", "forward", 1.02), dense("conv2d", "8x3 -> 4", "forward", 0.97),
                     dense("conv2d", "8x3 -> 4", "backward_weight", 1.11), memory("relu", "forward", 0.66))
        text = self.written()
        self.assertIn("| 64x64x9 | 1.23 | 201 | 0.87 | 1.02 (0.92-1.12) | sgemm | 0.91 |", text)
        self.assertIn("| 8x3 -> 4 | 0.97 (0.87-1.07) |  | 1.11 (1.01-1.21) | 0.87 / - / 0.87 | 0.91 / - / 0.91 |", text)
        self.assertIn("| relu forward | [7, 512] | 20.5 | 21.3 | 0.66 (0.56-0.76) |", text)
        self.assertNotIn("1x2x3", text)
        self.assertIn("(y = a x, 30.1 GB/s)", " ".join(text.split()))

    def test_the_streaming_bandwidth_is_a_range_over_the_rows(self):
        self.results("op_bench", memory("relu", "forward", 0.66), memory("relu", "backward", 0.7, stream_gbytes_per_second=9.5))
        self.assertIn("(y = a x, 9.5 to 30.1 GB/s)", self.prose())

    def test_the_passes_that_set_the_streaming_bandwidth_are_named(self):
        self.results("op_bench", memory("relu", "forward", 0.66, stream="scale in place"),
                     memory("sgd", "step", 0.9, stream="scale"), memory("relu", "backward", 0.7, stream="scale in place"))
        self.assertIn("(y = a x: scale in place or scale, 30.1 GB/s)", self.prose())

    def test_factored_shows_the_flop_ratio_beside_the_time_ratio(self):
        self.results("factored_bench", factored("forward", 5.5), factored("training", 4.6))
        text = self.written()
        self.assertIn("| out 64 in 32 | forward | 5 | 1 | 5.50 (5.40-5.60) |  | 8.47 | 4.40 |", text)
        self.assertIn("| out 64 in 32 | training |", text)

    def test_a_network_is_compared_with_the_library_s_chain_in_the_last_column(self):
        network = factored("forward", 1.5, shape="resnet18 1x224x224x3", chain={"name": "oneDNN's chain"}, chain_ratio=summary(1.07),
                           chain_target=1.0)
        del network["blocked_ratio"]
        training = factored("training", 1.4, shape="resnet18 32x224x224x3")
        del training["blocked_ratio"]
        self.results("factored_bench", network, training)
        self.assertIn("| 1.50 (1.40-1.60) |  | 8.47 | 1.07, 1: met |\n", self.written())
        self.assertIn("| 1.40 (1.30-1.50) |  | 8.47 |  |\n", self.written())

    def test_factored_says_whether_targets_are_met_and_what_inference_may_keep(self):
        self.results("factored_bench", factored("forward", 4.9, target=5.0, weights="constant"),
                     factored("training", 4.6, target=4.5, weights="changing"))
        text = self.prose()
        self.assertIn("| 4.90 (4.80-5.00) | 5: missed |", text)
        self.assertIn("| 4.60 (4.50-4.70) | 4.5: met |", text)
        self.assertIn("is made once, before the timing", text)
        self.results("factored_bench", factored("forward", 5.5))  # from before there was a choice
        self.assertIn("lays its weights out anew", self.prose())

    def test_factored_layers_of_a_library_have_a_table_of_their_own(self):
        self.results("factored_bench", factored("forward", 5.5), factored("training", 4.6), library("forward", 2.0),
                     library("training", 1.1))
        text = self.written()
        self.assertIn("| out 64 in 32 | forward | 5 | 1 | 5.50 (5.40-5.60) |  | 8.47 | 4.40 |", text)
        self.assertIn("| tt, TensorLy-Torch | 8x14x14x256 -> 256, 3x3 | r1 16 r2 57 r3 56 r4 16 / 64 64 64 | 58168 / 57344 | 300 | "
                      "forward | 1.5 | 3 | 2.00 (1.90-2.10) | 1.2: met | factorized-compiled, 2 threads, passive wait |", text)
        self.assertIn("| 1.10 (1.00-1.20) | 1.2: missed |", text)
        self.assertIn("against TensorLy-Torch 0.5.0's", self.prose())

    def test_a_run_without_libraries_keeps_their_last_table(self):
        self.results("factored_bench", library("forward", 2.0, date="2026-01-01T00:00:00Z"), factored("forward", 5.5))
        text = self.written()
        self.assertIn("| 5.50 (5.40-5.60) |", text)
        self.assertIn("| 2.00 (1.90-2.10) |", text)

    def test_check_accepts_what_was_written_and_names_what_differs(self):
        self.all_kinds()
        self.written()
        self.assertEqual(self.run_script("--check"), (0, ""))
        before = self.page.read_text()
        self.training(train(1.75))
        code, message = self.run_script("--check")
        self.assertEqual(code, 1)
        self.assertIn("docs/benchmarks.md is not what the results give; run scripts/benchmark_tables.py", message)
        self.assertIn("+| run 1 | 170 | 221 | 1.75 (1.65-1.85) |", message)
        self.assertIn("README.md is not what the results give", message)
        self.assertEqual(self.page.read_text(), before)

    def test_check_looks_at_each_page(self):
        self.all_kinds()
        self.reproduced_results(REPRODUCED)
        pages = {"docs/benchmarks.md": "1.25 (1.15", "README.md": "1.25 (1.15", "docs/results.md": "Mean of three"}
        for name, text in pages.items():
            self.written()
            page = self.root / name
            self.assertIn(text, page.read_text())
            page.write_text(page.read_text().replace(text, "changed"))
            code, message = self.run_script("--check")
            self.assertEqual(code, 1)
            for each in pages:
                self.assertEqual(f"{each} is not what" in message, each == name, each)

    def test_unusable_lines_are_named(self):
        self.results("train_bench", train(1.25), "{not json\n")
        code, message = self.run_script()
        self.assertEqual(code, 2)
        self.assertIn("train_bench.jsonl:2: not JSON", message)
        self.results("train_bench", {key: value for key, value in train(1.25).items() if key != "ratio"})
        self.assertEqual(self.run_script()[0], 2)
        self.assertIn("train_bench.jsonl:1: there is no key 'ratio'", self.run_script()[1])

    def test_markers_must_be_there_once_and_in_order(self):
        self.results("train_bench", train(1.25))
        pages = (self.page, self.readme, self.reproduced_page)
        before = {page: page.read_text() for page in pages}
        for page, name in zip(pages, ("docs/benchmarks.md", "README.md", "docs/results.md")):
            begin, end = (BEGIN, END) if page != self.reproduced_page else markers(REPRODUCED[-1])
            for text in ("nothing", begin, f"{end}\n{begin}", f"{begin}\n{begin}\n{end}"):
                tables = {self.readme: REPRODUCED_IN_README, self.reproduced_page: REPRODUCED[:-1]}.get(page, ())
                page.write_text("".join(map(reproduced, tables)) + f"{text}\n")
                changed = {other: other.read_text() for other in before}
                code, message = self.run_script()
                self.assertEqual(code, 2)
                self.assertIn(f"{name}: needs the line '{begin}'", message)
                self.assertEqual({other: other.read_text() for other in before}, changed)
            page.write_text(before[page])


if __name__ == "__main__":
    unittest.main()
