#!/usr/bin/env python3
"""cmake/build_info.cmake in a small repository: which changes make its commit a dirty one. Usage: build_info_test.py CMAKE GIT"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "cmake" / "build_info.cmake"
CMAKE, GIT = sys.argv[1:3]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b",
    "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}


class BuildInfo(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.source = self.folder / "source"
        (self.source / "bench" / "results").mkdir(parents=True)
        (self.source / "docs").mkdir()
        (self.folder / "in.h").write_text("@TESSERA_COMMIT@\n")
        for name in ("code.cpp", "README.md", "bench/code.cpp", "bench/results/a.jsonl", "docs/bench.md", "docs/benchmarks.md",
                     "docs/results.md"):
            (self.source / name).write_text("before\n")

    def git(self, *words):
        done = subprocess.run([GIT, *words], cwd=self.source, env=ENVIRONMENT, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    def commit(self):
        self.git("init", "-q")
        self.git("add", ".")
        self.git("commit", "-qm", "all")
        return self.git("rev-parse", "--short", "HEAD")

    def recorded(self, git=GIT):
        subprocess.run([CMAKE, "-D", f"GIT={git}", "-D", f"SOURCE_DIR={self.source}", "-D", f"INPUT={self.folder / 'in.h'}",
                        "-D", f"OUTPUT={self.folder / 'out.h'}", "-P", SCRIPT], env=ENVIRONMENT, check=True)
        return (self.folder / "out.h").read_text().strip()

    def test_what_a_benchmark_run_writes_leaves_the_commit_clean(self):
        commit = self.commit()
        self.assertEqual(self.recorded(), commit)
        (self.source / "bench" / "results" / "a.jsonl").write_text("after\n")
        (self.source / "README.md").write_text("after\n")
        (self.source / "docs" / "benchmarks.md").write_text("after\n")
        (self.source / "docs" / "results.md").write_text("after\n")
        self.assertEqual(self.recorded(), commit)
        self.git("add", ".")
        self.assertEqual(self.recorded(), commit)

    def test_other_changes_make_it_dirty_staged_or_not(self):
        commit = self.commit()
        for name in ("code.cpp", "bench/code.cpp", "docs/bench.md"):
            (self.source / name).write_text("after\n")
            self.assertEqual(self.recorded(), commit + "-dirty")
            self.git("add", ".")
            self.assertEqual(self.recorded(), commit + "-dirty")
            (self.source / name).write_text("before\n")
            self.git("add", ".")
            self.assertEqual(self.recorded(), commit)

    def test_without_a_repository_or_git_it_is_unknown(self):
        self.assertEqual(self.recorded(git=""), "unknown")
        ENVIRONMENT["GIT_CEILING_DIRECTORIES"] = str(self.folder)
        self.assertEqual(self.recorded(), "unknown")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
