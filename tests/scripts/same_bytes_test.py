#!/usr/bin/env python3
"""scripts/same_bytes with programs that only write run folders: what is equal, what differs and where, and what is refused."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "same_bytes"
# A stand-in for tessera: `train FILE [WORDS] --runs FOLDER` writes a run of one checkpoint. CHANGE is what it does besides.
PROGRAM = """#!/usr/bin/env python3
import json, pathlib, struct, sys
runs = pathlib.Path(sys.argv[sys.argv.index("--runs") + 1])
text = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8") + " ".join(sys.argv)
run = runs / "name" / "1"
checkpoint = run / "checkpoints" / "step-00000008"
checkpoint.mkdir(parents=True)
header = json.dumps({{"a": {{"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}},
                     "b": {{"dtype": "U8", "shape": [4], "data_offsets": [4, 8]}}}}).encode()
values = bytearray(range(8))
tree = ["conv"]
rows = '{{"step": 1}}\\n{{"step": 2}}\\n'
{change}
for part in ("model", "optimizer"):
    (checkpoint / (part + ".safetensors")).write_bytes(struct.pack("<Q", len(header)) + header + values)
(checkpoint / "MANIFEST.json").write_text(json.dumps({{"model": tree, "commit": sys.argv[0]}}))
(run / "metrics.jsonl").write_text(rows)
(run / "timing.jsonl").write_text(sys.argv[0])
choices = {{"conv": "nhwc", "keep.layer b": "not-faster x 2", "keep.layer a": "faster x 1", "keep.network": "not-faster x 3"}}
(run / "decisions.json").write_text(json.dumps({{"version": 1, "decisions": choices}}))
if "bf16" in text and {refuses}:
    sys.exit("bf16 needs a processor that this is not")
(runs.parent / (runs.name + ".words")).write_text(" ".join(sys.argv[2:]))
"""
CMAKE = """cmake_minimum_required(VERSION 3.20)
project(fake NONE)
configure_file(program bin/tessera COPYONLY)
add_custom_target(tessera)
"""


class Fixture(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.out = self.root / "out"
        self.script = SCRIPT

    def program(self, name, change="", refuses=False):
        path = self.root / name
        path.write_text(PROGRAM.format(change=change, refuses=refuses), encoding="utf-8")
        path.chmod(0o755)
        return path

    def run_script(self, *words):
        command = [str(word) for word in (sys.executable, self.script, *words)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=self.root)

    def expect(self, done, status, line):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        self.assertIn(line, done.stdout + done.stderr)


class SameBytes(Fixture):
    def compare(self, change="", *words, refuses=False):
        a, b = self.program("a"), self.program("b", change, refuses)
        return self.run_script("--program-a", a, "--program-b", b, "--out", self.out, *words)

    def test_equal_runs_are_equal_whatever_their_other_files_hold(self):
        done = self.compare()
        self.assertEqual(done.stdout.splitlines(), [f"equal: {name}: 3 files" for name in
                                                    ("quickstart", "tucker", "images", "bf16", "ema")])
        self.expect(done, 0, "")

    def test_the_veto_is_recorded_by_the_clock_and_replayed_without_one(self):
        self.expect(self.compare("", "--only", "tucker"), 0, "equal: tucker")
        folder = self.out / "tucker"
        decisions = folder / "recorded" / "network.json"
        words = {path.stem: path.read_text(encoding="utf-8") for path in folder.rglob("*.words")}
        self.assertEqual(set(words), {"layers", "network", "a", "b"})
        for side, said in words.items():
            self.assertIn("threads={compute: 2, loader: 2}", said)
            self.assertEqual(side in "ab", "deterministic=true" in said and f"--decisions {decisions}" in said, said)
        self.assertEqual(json.loads(decisions.read_text(encoding="utf-8"))["decisions"],
                         {"conv": "nhwc", "keep.layer b": "faster x 2", "keep.layer a": "not-faster x 1",
                          "keep.network": "faster x 3"})

    def test_a_changed_byte_is_named_with_its_tensor(self):
        done = self.compare("values[5] = 99", "--only", "ema")
        self.expect(done, 1, "differs: ema: 2 of 3 files; first checkpoints/step-00000008/model.safetensors: byte ")
        self.assertTrue(done.stdout.endswith(", tensor b\n"), done.stdout)

    def test_a_changed_number_is_named_with_its_line(self):
        self.expect(self.compare("rows = rows.replace('2', '3')", "--only", "ema"), 1,
                    "differs: ema: 1 of 3 files; first metrics.jsonl: byte 21, line 2")

    def test_a_tensor_more_and_a_shorter_file_differ(self):
        self.expect(self.compare("header = header.replace(b'\"b\"', b'\"c\"')", "--only", "ema"), 1, "model.safetensors: byte ")
        self.expect(self.compare("values = values[:6]", "--only", "ema"), 1, ", tensor b")

    def test_a_missing_file_differs_on_either_side(self):
        change = "__import__('atexit').register((checkpoint / 'optimizer.safetensors').unlink)"
        for sides, side in ((("a", "b"), "a"), (("b", "a"), "b")):
            paths = {"a": self.program("a"), "b": self.program("b", change)}
            done = self.run_script("--program-a", paths[sides[0]], "--program-b", paths[sides[1]], "--out", self.out,
                                   "--only", "quickstart")
            self.expect(done, 1, f"differs: quickstart: 1 of 3 files; first checkpoints/step-00000008/optimizer.safetensors: "
                                 f"only in {side}")

    def test_runs_without_tensors_are_not_equal(self):
        empty = self.program("empty", "sys.exit(0)")
        done = self.run_script("--program-a", empty, "--program-b", empty, "--out", self.out, "--only", "ema")
        self.expect(done, 1, "failed: ema: a wrote no tensor file")

    def test_module_trees_are_compared_where_that_is_asked_for(self):
        self.expect(self.compare("tree = ['other']", "--only", "ema"), 0, "equal: ema: 3 files")
        self.expect(self.compare("", "--only", "ema", "--trees"), 0, "equal: ema: 4 files")
        self.expect(self.compare("tree = ['other']", "--only", "ema", "--trees"), 1, "MANIFEST.json, model: byte ")

    def test_a_run_that_fails_is_told_apart_from_a_refusal_by_both(self):
        self.expect(self.compare("sys.exit('out of paper')", "--only", "ema"), 1,
                    "failed: ema: b ended with status 1: out of paper")
        self.expect(self.compare("", "--only", "bf16", refuses=True), 1,
                    "failed: bf16: b ended with status 1: bf16 needs a processor")
        both = self.program("both", refuses=True)
        done = self.run_script("--program-a", both, "--program-b", both, "--out", self.out, "--only", "bf16", "--only", "ema")
        self.expect(done, 0, "skipped: bf16: status 1: bf16 needs a processor that this is not\nequal: ema: 3 files\n")

    def test_images_are_written_once_for_both(self):
        self.expect(self.compare("", "--only", "images"), 0, "equal: images")
        images = sorted((self.out / "images" / "images" / "train" / "class0").iterdir())
        self.assertEqual({path.read_bytes()[:4] for path in images}, {b"\x89PNG", b"\xff\xd8\xff\xdb"})

    def test_bad_arguments_are_refused(self):
        program = self.program("a")
        for words in ((), ("--program-a", program), ("HEAD", "--program-a", program, "--program-b", program),
                      ("--program-a", program, "--program-b", program, "--only", "nothing"), ("HEAD", "--unknown")):
            self.expect(self.run_script(*words), 2, "usage: same_bytes REV")
        self.expect(self.run_script("--program-a", program, "--program-b", self.root / "none", "--out", self.out), 2,
                    "No such file or directory")


@unittest.skipUnless(all(map(shutil.which, ("git", "cmake", "ninja"))), "needs git, cmake and ninja")
class Builds(Fixture):
    """A repository whose program is a script that CMake copies."""

    def setUp(self):
        super().setUp()
        self.tree = self.root / "tree"
        (self.tree / "scripts").mkdir(parents=True)
        (self.tree / "configs").mkdir()
        self.script = shutil.copy(SCRIPT, self.tree / "scripts")
        (self.tree / "configs" / "quickstart.yaml").write_text("version: 1\n", encoding="utf-8")
        (self.tree / ".gitignore").write_text("/build/\n", encoding="utf-8")
        (self.tree / "CMakeLists.txt").write_text(CMAKE, encoding="utf-8")
        presets = [{"name": "cpu", "generator": "Ninja", "binaryDir": "${sourceDir}/build/cpu"}]
        (self.tree / "CMakePresets.json").write_text(json.dumps({"version": 3, "configurePresets": presets}), encoding="utf-8")
        self.program("tree/program")
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "First")

    def git(self, *words):
        return subprocess.run(["git", "-C", self.tree, *words], check=True, capture_output=True, text=True).stdout.strip()

    def test_a_revision_is_built_beside_the_tree_and_kept(self):
        self.expect(self.run_script("HEAD", "--only", "quickstart"), 0, "equal: quickstart: 3 files")
        built = self.tree / "build" / "same_bytes" / self.git("rev-parse", "HEAD") / "build" / "cpu" / "bin" / "tessera"
        before = built.stat().st_mtime_ns
        self.program("tree/program", "values[0] = 7")  # in the tree alone, not committed
        self.expect(self.run_script("HEAD", "--only", "quickstart"), 1, ", tensor a")
        self.assertEqual(built.stat().st_mtime_ns, before)
        shutil.rmtree(self.tree / "build")
        self.expect(self.run_script("HEAD", "--only", "quickstart"), 1, ", tensor a")

    def test_what_cannot_be_built_is_an_error(self):
        self.expect(self.run_script("nothing"), 2, "nothing^{commit}")
        (self.tree / "CMakeLists.txt").write_text("message(FATAL_ERROR no)\n", encoding="utf-8")
        self.expect(self.run_script("HEAD"), 2, "CMake Error")
        built = self.tree / "build" / "same_bytes" / self.git("rev-parse", "HEAD")
        (built / "program").write_text("changed", encoding="utf-8")
        self.expect(self.run_script("HEAD"), 2, "was changed")


if __name__ == "__main__":
    unittest.main()
