#!/usr/bin/env python3
"""scripts/summarise_tests.py on what ctest says of stand-ins for GoogleTest programs: reports, crashes, time limits and skips."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import quoteattr

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "summarise_tests.py"
SKIPS = "# a comment\ntrain/Oracle.*\t[torch] no torch\ncore/Odd.Skips\tthe list's reason\ncuda/*\t[gpu] no GPU\n"

# Prints what GoogleTest would, leaves the report that it is asked for, unless that is empty, and ends.
PROGRAM = """#!/bin/sh
cat <<'OUTPUT'
{output}
OUTPUT
report='{report}'
for word in "$@"; do case "$word" in --gtest_output=xml:*)
  if [ -n "$report" ]; then printf '%s' "$report" > "${{word#--gtest_output=xml:}}"; fi
;; esac; done
{end}
"""


def case(name, inner="", status="run", result="completed"):
    suite, _, own = name.partition(".")
    return f'<testcase classname={quoteattr(suite)} name={quoteattr(own)} status="{status}" result="{result}">{inner}</testcase>'


def failed(name, message):
    return case(name, f"<failure message={quoteattr(message, {chr(10): '&#x0A;'})}/>")


def skipped(name, message):
    return case(name, f"<skipped message={quoteattr('a.cpp:3' + chr(10) + message, {chr(10): '&#x0A;'})}/>", result="skipped")


def report(*cases):
    return f'<?xml version="1.0" encoding="UTF-8"?><testsuites><testsuite>{"".join(cases)}</testsuite></testsuites>'


def begins(name):
    return f"[ RUN      ] {name}"


def passes(name):
    return f"{begins(name)}\n[       OK ] {name} (0 ms)"


class Summary(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.tests = []

    def add(self, test, report="", output="", end="exit 0", limit=60, counted=True):
        path = self.root / f"program{len(self.tests)}"
        path.write_text(PROGRAM.format(report=report, output=output, end=end), encoding="utf-8")
        path.chmod(0o755)
        words = [test, path, *([f"--gtest_output=xml:{path}.xml"] if counted else [])]
        self.tests.append(f"add_test({' '.join(f'[==[{word}]==]' for word in words)})\n"
                          f"set_tests_properties([==[{test}]==] PROPERTIES TIMEOUT {limit})\n")

    def summarise(self, require="", skips=SKIPS, leave_out="$^"):
        """(exit status, the lines printed)."""
        (self.root / "CTestTestfile.cmake").write_text("".join(self.tests), encoding="utf-8")
        (self.root / "skips.txt").write_text(skips, encoding="utf-8")
        environment = {**os.environ, "TESSERA_REQUIRE": require}
        ctest = ["ctest", "--test-dir", self.root]
        listed = subprocess.run([*ctest, "--show-only=json-v1"], capture_output=True, text=True, check=True)
        (self.root / "tests.json").write_text(listed.stdout, encoding="utf-8")
        subprocess.run([*ctest, "--output-junit", self.root / "junit.xml", "--exclude-regex", leave_out], capture_output=True,
                       check=False)
        command = [sys.executable, SCRIPT, self.root / "tests.json", self.root / "junit.xml", self.root / "skips.txt"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        return done.returncode, (done.stdout + done.stderr).splitlines()

    def test_counts_cases_by_folder(self):
        self.add("core/ops [1/2]", report(case("Relu.Runs"), case("Cpu/Table.Runs/5")))
        self.add("core/ops [2/2]", report(case("Cpu/Table.Runs/7.5")))
        self.add("check_includes", counted=False)
        self.assertEqual(self.summarise(), (0, ["", "ran 4 cases, 2 of them rows of tables:", "  core/ops: 3 passed", "  scripts: 1 passed",
                                                "4 passed, 0 failed, 0 skipped"]))

    def test_names_a_failed_case(self):
        self.add("core/ops", report(case("Relu.Runs"), failed("Cpu/Table.Runs/<5>", "a.cpp:3\nExpected:\n  1 & 2")), end="exit 1")
        self.add("core/io", report(case("File.Reads")))
        status, lines = self.summarise()
        self.assertEqual((status, lines[-3:]), (1, ["failed:", "  core/ops/Cpu/Table.Runs/<5>: a.cpp:3 Expected: 1 & 2",
                                                    "2 passed, 1 failed, 0 skipped"]))

    def test_names_the_case_in_which_a_program_crashed(self):
        output = "\n".join(["[==========] Running 5 tests from 1 test suite.", passes("A.First"), begins("A.Second"), "a.cpp:3",
                            "printed[  FAILED  ] A.Second, where GetParam() = 5 (1 ms)", begins("A.Third"), "last words"])
        self.add("core", "", output, end="kill -SEGV $$")
        status, lines = self.summarise()
        self.assertEqual((status, lines[-3:]), (1, ["  core/A.Second: a.cpp:3",
                                                    "  core/A.Third: the program ended early; not run behind it: 2; last words",
                                                    "1 passed, 2 failed, 0 skipped"]))

    def test_a_report_that_breaks_off_is_none(self):
        output = f"[==========] Running 2 tests from 1 test suite.\n{passes('A.First')}\n{passes('A.Second')}"
        self.add("core", report(case("A.First"), case("A.Second"))[:-40], output, end="exit 1")
        self.assertEqual(self.summarise()[1][-2:], ["  core: the program ended early", "2 passed, 1 failed, 0 skipped"])

    def test_a_program_that_ends_in_a_case_has_failed_whatever_its_status(self):
        self.add("core", "", f"[==========] Running 1 test from 1 test suite.\n{begins('A.Exits')}")
        self.add("layers")
        status, lines = self.summarise()
        self.assertEqual((status, lines[-3:]), (1, ["  core/A.Exits: the program ended early",
                                                    "  layers: the program ended early", "0 passed, 2 failed, 0 skipped"]))

    def test_names_the_case_that_took_too_long(self):
        self.add("core", "", f"{passes('A.First')}\n{begins('A.Hangs')}", end="exec sleep 60", limit=1)
        self.assertEqual(self.summarise()[1][-2:], ["  core/A.Hangs: timed out after 1 s", "1 passed, 1 failed, 0 skipped"])

    def test_a_program_may_fail_when_its_cases_have_passed(self):
        suite = "[  FAILED  ] A: SetUpTestSuite or TearDownTestSuite"
        self.add("core", report(case("A.First")), suite, end="exit 1")
        self.add("layers", report(case("A.First")), end="kill -ABRT $$")
        self.assertEqual(self.summarise()[1][-3:], ["  core: failed; A: SetUpTestSuite or TearDownTestSuite", "  layers: failed",
                                                    "2 passed, 2 failed, 0 skipped"])

    def test_a_skip_is_allowed_by_the_list(self):
        self.add("train [threads]", report(skipped("Oracle.Agrees", "python3 has no torch")))
        self.add("core", report(skipped("Odd.Skips", ""), skipped("Odd.SkipsToo", "why")))
        status, lines = self.summarise()
        self.assertEqual((status, lines[-6:]), (1, ["skipped:", "  train/Oracle.Agrees: python3 has no torch",
                                                    "  core/Odd.Skips: the list's reason", "failed:",
                                                    "  core/Odd.SkipsToo: skipped (why), and tests/skips.txt does not list it",
                                                    "0 passed, 1 failed, 2 skipped"]))

    def test_what_is_required_may_not_be_skipped(self):
        self.add("train", report(skipped("Oracle.Agrees", "python3 has no torch")))
        self.assertEqual(self.summarise("gpu")[0], 0)
        status, lines = self.summarise("gpu, torch")
        self.assertEqual((status, lines[-2:]), (1, ["  train/Oracle.Agrees: skipped (python3 has no torch), but TESSERA_REQUIRE "
                                                    "asks for torch: [torch] no torch", "0 passed, 1 failed, 0 skipped"]))

    def test_skips_of_a_suite_for_one_reason_are_one_line(self):
        self.add("cuda/core", report(*(skipped(f"Gpu/Table.Runs/{n}.5", "needs a GPU: none") for n in range(4)),
                                     skipped("CudaTensor.Fills", "needs a GPU: none")))
        self.assertEqual(self.summarise()[1][-3:], ["  cuda/core/Gpu/Table.* (4 cases): needs a GPU: none",
                                                    "  cuda/core/CudaTensor.Fills: needs a GPU: none",
                                                    "0 passed, 0 failed, 5 skipped"])

    def test_a_disabled_case_is_a_skip(self):
        self.add("core", report(case("A.DISABLED_First", status="notrun", result="suppressed")))
        self.assertEqual(self.summarise()[1][-2:], ["  core/A.DISABLED_First: skipped (disabled), and tests/skips.txt does not "
                                                    "list it", "0 passed, 1 failed, 0 skipped"])

    def test_no_case_and_no_test_are_failures(self):
        self.assertEqual(self.summarise()[1][-2:], ["  tests: no test ran", "0 passed, 1 failed, 0 skipped"])
        self.add("core", report())
        status, lines = self.summarise()
        self.assertEqual((status, lines[-2:]), (1, ["  core: it ran no case", "0 passed, 1 failed, 0 skipped"]))

    def test_what_was_not_built_or_not_started_has_failed(self):
        self.add("core", report(case("A.First")))
        self.add("layers", report(case("A.First")))
        (self.root / "program0").unlink()
        status, lines = self.summarise(leave_out="layers")
        self.assertEqual((status, lines[-3:]), (1, ["  core: did not run: Unable to find executable", "  layers: did not run",
                                                    "0 passed, 2 failed, 0 skipped"]))

    def test_names_the_failed_cases_of_a_program_whose_cases_are_not_counted(self):
        self.add("core/ops/on_5_threads", "", f"{passes('A.First')}\n{begins('A.Second')}\n[  FAILED  ] A.Second (1 ms)\n"
                 f"{begins('A.Third')}", end="exit 1", counted=False)
        self.assertEqual(self.summarise()[1][-2:], ["  core/ops/on_5_threads: failed: A.Second, A.Third",
                                                    "0 passed, 1 failed, 0 skipped"])

    def test_a_line_of_the_list_needs_a_reason(self):
        self.add("core", report(case("A.First")))
        status, lines = self.summarise(skips="core/A.First\n")
        self.assertEqual(status, 2)
        self.assertIn("skips.txt:1: expected name<TAB>reason", lines[-1])


if __name__ == "__main__":
    unittest.main()
