#!/usr/bin/env python3
"""scripts/gpu_check without a GPU: what its lines give, what it says of libraries, and that a failing line stops nothing."""
import argparse
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import unittest
import unittest.mock

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))
import gpu_libraries  # noqa: E402
import gpu_lines  # noqa: E402
import gpu_results  # noqa: E402


def gpu_check():
    """The script as a module."""
    loader = importlib.machinery.SourceFileLoader("gpu_check", str(SCRIPTS / "gpu_check"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_check", loader))
    loader.exec_module(module)
    return module


# A stand-in for a GoogleTest program: writes the report that it is asked for.
PROGRAM = """#!/bin/sh
for word in "$@"; do case "$word" in --gtest_output=json:*) cat > "${{word#--gtest_output=json:}}" <<'REPORT'
{report}
REPORT
;; esac; done
echo last words
exit {status}
"""


def case(name, result="COMPLETED", failure=None, skipped=None):
    made = {"name": name, "status": "RUN", "result": result}
    if failure:
        made["failures"] = [{"failure": failure}]
    if skipped:
        made["skipped"] = [{"message": skipped}]
    return made


def report(suite, *cases):
    return {"testsuites": [{"name": suite, "testsuite": list(cases)}]}


def op_table(device, *rows):
    return report(f"{device}/OpTable", *(case(f"ForwardMatchesReference/{row}") for row in rows))


class Results(unittest.TestCase):
    def test_reads_what_became_of_each_case(self):
        cases = gpu_results.cases_of(report("Suite", case("Good"), case("Bad", failure="a.cpp:3\nExpected: 1"),
                                            case("Left", result="SKIPPED", skipped="a.cpp:1\nneeds a GPU: none"),
                                            {"name": "Other", "status": "NOTRUN"}))
        self.assertEqual(cases, [("Suite.Good", "passed", ""), ("Suite.Bad", "failed", "a.cpp:3 Expected: 1"),
                                 ("Suite.Left", "skipped", "needs a GPU: none")])

    def test_counts_rows_of_the_op_table_that_pass_on_both_devices(self):
        cpu = gpu_results.cases_of(op_table("Cpu", "relu", "matmul"))
        cuda = gpu_results.cases_of(op_table("Cuda", "relu", "matmul"))
        self.assertEqual(gpu_results.op_rows_line(cpu + cuda), ("op rows on cuda: 2 of 2", True))
        self.assertEqual(gpu_results.op_rows_line(cpu + cuda[:1]), ("op rows on cuda: 1 of 2", False))
        self.assertEqual(gpu_results.op_rows_line(cuda), ("op rows on cuda: 0 of 0", False))
        failed = gpu_results.cases_of(report("Cuda/OpTable", case("ForwardMatchesReference/relu", failure="off")))
        self.assertEqual(gpu_results.op_rows_line(cpu + failed), ("op rows on cuda: 0 of 2", False))

    def test_a_skip_is_judged_by_the_list_whatever_the_programs_folder_is(self):
        allowed = [("core/ops_dense/Cpu/Winograd.*/avx512", "no AVX-512", set()), ("train/Oracle.*", "[torch] none", {"torch"})]
        judge = gpu_results.judge_skip
        self.assertEqual(judge("test_core_ops_dense", "Cpu/Winograd.Runs/avx512", allowed, set()), ("skipped", "no AVX-512"))
        self.assertEqual(judge("test_train", "Oracle.Agrees", allowed, {"torch"})[0], "failed")
        self.assertEqual(judge("test_core", "Oracle.Agrees", allowed, set())[0], "failed")
        self.assertEqual(judge("test_cuda_core", "CudaTensor.Fills", allowed, set())[0], "skipped")
        self.assertEqual(judge("test_cuda_core", "CudaTensor.Fills", allowed, {"gpu"})[0], "failed")

    def test_the_last_verdict_of_a_benchmark_is_shown(self):
        text = "a row\nverdict: relu: 2 rows; missed\nverdict: every op: 9 rows; least 0.85: missed\nthe end\n"
        self.assertEqual(gpu_results.verdict(text), "every op: 9 rows; least 0.85: missed")
        self.assertEqual(gpu_results.verdict("a row\n"), "")

    def test_the_page_has_bad_lines_first_and_of_good_ones_the_benchmarks_alone(self):
        def result(part, name, state, detail):
            return {"part": part, "name": name, "state": state, "seconds": 1.0, "detail": detail}

        good = [result("tests", f"test_{i}", "passed", "3 passed") for i in range(90)]
        page = gpu_results.summary([*good, result("tests", "test_bad", "failed", "Suite.Wrong: it is"),
                                    result("tests", "op-rows", "passed", "op rows on cuda: 61 of 61"),
                                    result("bench", "op-core", "passed", "least 1.18: met"),
                                    result("bench", "op-memory", "timed out", "after 60 s")],
                                   {"commit": "abc1234", "gpu": "H100", "driver": "570"})
        self.assertEqual(page, "commit abc1234, H100, driver 570\n"
                               "92 passed, 1 failed, 1 timed out, 0 not run, 0 skipped\n\n"
                               "tests: 91 passed, 1 failed, 0 timed out, 0 not run, 0 skipped\n"
                               "  failed     test_bad  Suite.Wrong: it is\n"
                               "  passed     op-rows  op rows on cuda: 61 of 61\n\n"
                               "bench: 1 passed, 0 failed, 1 timed out, 0 not run, 0 skipped\n"
                               "  timed out  op-memory  after 60 s\n"
                               "  passed     op-core  least 1.18: met\n")

    def test_of_a_budget_each_part_gets_half_of_what_is_left(self):
        deadline = gpu_check().part_deadline
        self.assertEqual(deadline(0, 1200, 530, False), 530)
        self.assertEqual(deadline(530, 1200, 530, False), 865)
        self.assertEqual(deadline(865, 1200, 530, True), 1200)
        self.assertEqual(deadline(1590, 3595, 530, True), 3595)  # all of it, however long
        self.assertEqual(deadline(1590, 3595, 300, True), 1890)  # --seconds 300
        self.assertEqual(deadline(865, float("inf"), 530, False), 1395)
        self.assertEqual(deadline(865, float("inf"), 530, True), 1395)

    def test_the_repositorys_list_of_skips_is_read(self):
        allowed = gpu_results.read_skips(SCRIPTS.parent / "tests" / "skips.txt")
        self.assertIn(("train/TorchOracle.*", {"torch"}), [(pattern, tags) for pattern, _, tags in allowed])


class Libraries(unittest.TestCase):
    def test_reads_what_the_loader_finds(self):
        text = ("\tlinux-vdso.so.1 (0x1)\n\tlibcudart.so.13 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x7f00)\n"
                "\t/lib64/ld-linux-x86-64.so.2 (0x2)\n")
        self.assertEqual(gpu_libraries.read_ldd(text), {"libcudart.so.13": None, "libc.so.6": "/lib/libc.so.6"})

    def test_names_what_is_missing_from_where_it_comes_and_where_it_was_looked_for(self):
        missing = {"libcudnn.so.9": None, "libcusparse.so.12": None, "libodd.so": None}
        lines = gpu_libraries.explain_missing(missing, [("toolkit", "/some/lib")])
        self.assertIn("libcudnn.so.9  (cuDNN 9", lines[1])
        self.assertIn("libcusparse.so.12  (cuSPARSE of CUDA 13", lines[2])
        self.assertIn("libodd.so  (not part of CUDA", lines[3])
        self.assertIn("  /some/lib  (toolkit)", lines)

    def test_folders_are_tried_beside_pytorch_before_the_toolkits(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            for folder in ("given", "site/nvidia/cudnn/lib", "cuda-13/lib64"):
                (root / folder).mkdir(parents=True)
            python = root / "python"
            python.write_text(f"#!/bin/sh\necho {root}/site\n", encoding="utf-8")
            python.chmod(0o755)
            found = gpu_libraries.candidate_folders(str(python), {"LD_LIBRARY_PATH": f"{root}/given:{root}/none"},
                                                    (f"{root}/cuda*",))
        self.assertEqual(found[:3], [("LD_LIBRARY_PATH", f"{root}/given"), ("beside PyTorch", f"{root}/site/nvidia/cudnn/lib"),
                                     ("toolkit", f"{root}/cuda-13/lib64")])

    def make_program(self, root, name="libcudnn_none.so.9"):
        """root/main, and a library of CUDA's that it needs, in root/have."""
        (root / "have").mkdir()
        (root / "part.c").write_text("int part(void) { return 3; }\n", encoding="utf-8")
        (root / "main.c").write_text("int part(void); int main(void) { return part(); }\n", encoding="utf-8")
        library = root / "have" / name
        subprocess.run(["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", library, root / "part.c"], check=True)
        subprocess.run(["cc", "-o", root / "main", root / "main.c", library, f"-Wl,-rpath,{root}/known"], check=True)
        return library

    def test_a_folder_is_named_only_when_it_holds_what_a_program_needs(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            (root / "empty").mkdir()
            library = self.make_program(root)
            folders = [("toolkit", f"{root}/empty"), ("toolkit", f"{root}/have")]
            library.rename(root / "have" / "away")
            self.assertEqual(gpu_libraries.search_path([root / "main"], folders, f"{root}/lib")[1], {"libcudnn_none.so.9": None})
            (root / "have" / "away").rename(library)
            path, missing = gpu_libraries.search_path([root / "main"], folders, f"{root}/lib")
        self.assertEqual((path, missing), (f"{root}/have:{root}/lib", {}))

    def test_pytorchs_libraries_go_before_those_that_the_loader_knows(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            self.make_program(root, "libcublasLt_none.so.13")
            for folder in ("known", "torch"):
                shutil.copytree(root / "have", root / folder)
            folders = [("LD_LIBRARY_PATH", f"{root}/have"), ("beside PyTorch", f"{root}/torch")]
            self.assertEqual(gpu_libraries.search_path([root / "main"], folders, f"{root}/lib"), (f"{root}/torch:{root}/lib", {}))
            self.assertEqual(gpu_libraries.search_path([root / "main"], folders[:1], f"{root}/lib"), (f"{root}/lib", {}))

    def test_cudnn_alone_does_not_make_it_the_right_pytorch(self):
        with tempfile.TemporaryDirectory() as scratch:
            root = pathlib.Path(scratch)
            self.make_program(root)
            for folder in ("known", "torch"):
                shutil.copytree(root / "have", root / folder)
            found = gpu_libraries.search_path([root / "main"], [("beside PyTorch", f"{root}/torch")], f"{root}/lib")
        self.assertEqual(found, (f"{root}/lib", {}))

    def test_the_driver_is_found_where_the_caller_found_it(self):
        with tempfile.TemporaryDirectory() as driver, tempfile.TemporaryDirectory() as other:
            (pathlib.Path(driver) / "libcuda.so.1").touch()
            self.assertEqual(gpu_libraries.with_driver("/a:/b", {"folder": ""}, f"{other}:{driver}"), f"/a:/b:{driver}")
        self.assertEqual(gpu_libraries.with_driver("/a", {"folder": "/nvidia"}, ""), "/a:/nvidia")


class Lines(unittest.TestCase):
    def test_pytorch_gets_the_callers_libraries(self):
        options = argparse.Namespace(bin=pathlib.Path("bin"), out=pathlib.Path("out"), python="python3")
        with unittest.mock.patch.dict(os.environ, {"LD_LIBRARY_PATH": "/of/the/caller"}):
            lines = gpu_lines.rival_lines(options, {"why": "there is none"})
        self.assertEqual([line.environment for line in lines], 3 * [{"TESSERA_TORCH_LIBRARY_PATH": "/of/the/caller"}])

    def test_convolutions_are_timed_in_a_line_for_each_precision(self):
        options = argparse.Namespace(bin=pathlib.Path("bin"), out=pathlib.Path("out"))
        lines = [line for line in gpu_lines.bench_lines(options, {}) if "conv2d" in line.name]
        self.assertEqual([line.name for line in lines], ["op-conv2d-bf16", "op-conv2d-f32"])
        self.assertEqual(lines[0].command[-4:-2], ["--precision", "bf16"])

    def test_what_no_target_waits_for_comes_last(self):
        options = argparse.Namespace(bin=pathlib.Path("bin"), out=pathlib.Path("out"))
        lines = gpu_lines.bench_lines(options, {})
        self.assertEqual([line.name for line in lines][:1] + [line.name for line in lines][-5:],
                         ["op-core", "train-resnet50", "op-tucker", "op-sparse-f32", "op-sparse-bf16", "op-sparse-f16"])
        self.assertEqual(lines[-4].command[1:3], ["--part", "tucker"])

    def test_races_are_looked_for_in_our_kernels(self):
        with tempfile.TemporaryDirectory() as scratch:
            (pathlib.Path(scratch) / "test_cuda_optim").touch()
            options = argparse.Namespace(bin=pathlib.Path(scratch), out=pathlib.Path("out"))
            commands = {line.name: line.command for line in gpu_lines.sanitize_lines(options, {})}
        self.assertIn("kns=tessera", commands["racecheck-test_cuda_optim"])
        self.assertNotIn("kns=tessera", commands["memcheck-test_cuda_optim"])

    def test_sparse_products_are_timed_in_a_line_for_each_precision(self):
        options = argparse.Namespace(bin=pathlib.Path("bin"), out=pathlib.Path("out"))
        lines = [line for line in gpu_lines.bench_lines(options, {}) if "sparse" in line.name]
        self.assertEqual([line.command[1:5] for line in lines],
                         [["--part", "sparse", "--precision", name] for name in ("f32", "bf16", "f16")])
        self.assertEqual(lines[0].command[5:], ["--results", pathlib.Path("out/cuda_op_bench.jsonl")])


@unittest.skipIf("gpu" in gpu_libraries.find_gpu(gpu_libraries.candidate_folders()), "a GPU is there")
class Program(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "bin").mkdir()

    def add(self, name, content="{}", status=0, text=None):
        path = self.root / "bin" / name
        path.write_text(text or PROGRAM.format(report=json.dumps(content), status=status), encoding="utf-8")
        path.chmod(0o755)

    def check(self, *words):
        command = [sys.executable, SCRIPTS / "gpu_check", "--bin", self.root / "bin", "--out", self.root / "out", *words]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("GTEST_")}
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment, check=False)
        return done.returncode, done.stdout, done.stderr

    def rows(self):
        lines = (self.root / "out" / "gpu_check.jsonl").read_text(encoding="utf-8").splitlines()
        return {row["name"]: row for row in map(json.loads, lines)}

    def test_runs_the_cpu_half_and_says_so(self):
        self.add("test_a", op_table("Cpu", "relu"))
        self.add("test_cuda_core", report("CudaTensor", case("Fills", "SKIPPED")))
        status, output, _ = self.check("--part", "tests")
        self.assertEqual(status, 0, output)
        self.assertIn("the CPU half of the tests only", output)
        self.assertEqual(output.splitlines()[-1], "op rows on cuda: 0 of 1")
        self.assertEqual(self.rows()["test_a"]["detail"], "1 passed, 0 failed, 0 skipped")
        self.assertEqual(self.rows()["test_cuda_core.1"]["detail"], "0 passed, 0 failed, 1 skipped")

    def test_a_line_that_fails_hangs_or_is_no_program_does_not_stop_the_rest(self):
        self.add("test_bad", report("Suite", case("Wrong", failure="it is")), status=1)
        self.add("test_crash", text="#!/bin/sh\nkill -SEGV $$\n")
        self.add("test_exits", report("Suite", case("Right")), status=3)
        self.add("test_good", report("Suite", case("Right")))
        self.add("test_hangs", text="#!/bin/sh\nsleep 60 & wait\n")
        self.add("test_no_program", text="#!/no/such/interpreter\n")
        self.add("test_silent", text="#!/bin/sh\nexit 0\n")
        status, output, _ = self.check("--part", "tests", "--seconds", "3", "--jobs", "7")
        self.assertEqual(status, 1, output)
        states = {name: row["state"] for name, row in self.rows().items()}
        self.assertEqual(states, {"test_bad": "failed", "test_crash": "failed", "test_exits": "failed", "test_good": "passed",
                                  "test_hangs": "timed out", "test_no_program": "failed", "test_silent": "failed",
                                  "op-rows": "skipped"})
        self.assertEqual(self.rows()["test_exits"]["detail"], "1 passed, 0 failed, 0 skipped; exit status 3: last words")
        self.assertIn("Suite.Wrong: it is", self.rows()["test_bad"]["detail"])
        self.assertIn("signal 11", self.rows()["test_crash"]["detail"])
        self.assertIn("1 passed, 5 failed, 1 timed out, 0 not run, 1 skipped", output)

    def test_a_line_that_is_ended_keeps_its_verdict(self):
        self.add("test_a", text="#!/bin/sh\necho 'verdict: conv2d: least 0.98; least 0.97: met'\nsleep 60\n")
        self.check("--part", "tests", "--seconds", "2")
        self.assertEqual(self.rows()["test_a"]["state"], "timed out")
        self.assertTrue(self.rows()["test_a"]["detail"].endswith("; conv2d: least 0.98; least 0.97: met"))

    def test_what_there_is_no_time_for_is_said_not_to_have_run(self):
        self.add("test_a", text="#!/bin/sh\nsleep 60\n")
        self.add("test_b", report("Suite", case("Right")))
        self.assertEqual(self.check("--part", "tests", "--seconds", "1.5", "--jobs", "1")[0], 1)
        self.assertEqual(self.rows()["test_b"]["state"], "not run")

    def test_a_budget_ends_all_parts_and_leaves_an_archive_with_a_page(self):
        self.add("test_a", text="#!/bin/sh\nsleep 60\n")
        self.add("test_b", report("Suite", case("Right")))
        begin = time.monotonic()
        status, output, _ = self.check("--part", "tests", "--budget", "0.13", "--jobs", "1")
        self.assertLess(time.monotonic() - begin, 30)
        self.assertEqual(status, 1, output)
        with tarfile.open(self.root / "out.tar.gz") as archive:
            page = archive.extractfile("out/summary.txt").read().decode()
            names = archive.getnames()
        self.assertIn("timed out  test_a", page)
        self.assertIn("not run    test_b", page)
        self.assertIn("out/gpu_check.jsonl", names)
        self.assertIn("out/logs/tests-test_a.log", names)

    def test_of_a_log_its_end_is_packed(self):
        (self.root / "out" / "logs").mkdir(parents=True)
        log = self.root / "out" / "logs" / "a.log"
        log.write_bytes(b"begin" + bytes(3 * gpu_results.LOG_BYTES) + b"end")
        rows = self.root / "out" / "rows.jsonl"
        rows.write_bytes(bytes(2 * gpu_results.LOG_BYTES))
        with tarfile.open(gpu_results.pack(self.root / "out", "page\n")) as archive:
            sizes = {member.name: member.size for member in archive.getmembers()}
            self.assertTrue(archive.extractfile("out/logs/a.log").read().endswith(b"end"))
        self.assertEqual(sizes, {"out/summary.txt": 5, "out/logs/a.log": gpu_results.LOG_BYTES,
                                 "out/rows.jsonl": 2 * gpu_results.LOG_BYTES})

    def test_no_pool_reaches_the_programs(self):
        self.add("test_a", text='#!/bin/sh\necho "pool=$TESSERA_POOL"\n')
        self.check("--part", "tests", "--no-pool")
        self.assertIn("pool=0", (self.root / "out" / "logs" / "tests-test_a.log").read_text(encoding="utf-8"))

    def test_lists_and_chooses_lines(self):
        self.add("test_one")
        self.add("test_two")
        status, output, _ = self.check("--list", "--part", "tests", "--only", "two")
        self.assertEqual((status, [line.split()[1] for line in output.splitlines()]), (0, ["test_two"]))
        self.assertEqual(self.check("--part", "tests", "--only", "three")[0], 2)

    def test_benchmarks_need_a_gpu(self):
        self.add("cuda_op_bench")
        status, _, errors = self.check("--part", "bench")
        self.assertEqual(status, 2)
        self.assertIn("bench need a GPU", errors)
        self.assertEqual(self.check("--only", "op-core")[0], 2)

    def test_the_sanitizer_runs_programs_of_our_own_kernels(self):
        for name in ("test_cuda_bench", "test_cuda_core", "test_core"):
            self.add(name)
        output = self.check("--list", "--part", "sanitize")[1]
        self.assertEqual([line.split()[1] for line in output.splitlines()],
                         [f"{check}-test_cuda_core.{shard}" for check in ("memcheck", "racecheck") for shard in (1, 2, 3, 4)])


if __name__ == "__main__":
    unittest.main()
