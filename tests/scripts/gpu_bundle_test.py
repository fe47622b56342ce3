#!/usr/bin/env python3
"""scripts/gpu_bundle on a small build: what is packed, that it is the same twice, that it runs elsewhere, and its limits."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"
BUNDLE = "tessera-gpu"


class Bundle(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        build = self.root / "build"
        (build / "bin").mkdir(parents=True)
        (build / "own").mkdir()
        (self.root / "part.c").write_text("int part(void) { return 0; }\n", encoding="utf-8")
        (self.root / "main.c").write_text("int part(void); int main(void) { return part(); }\n", encoding="utf-8")
        library = build / "own" / "libpart.so.1"
        subprocess.run(["cc", "-g", "-shared", "-fPIC", "-Wl,-soname,libpart.so.1", "-o", library, self.root / "part.c"],
                       check=True)
        subprocess.run(["cc", "-g", "-o", build / "bin" / "test_part", self.root / "main.c", library,
                        f"-Wl,-rpath,{build}/own"], check=True)
        (build / "bin" / "unrelated").write_text("no", encoding="utf-8")

    def bundle(self, name, *words):
        command = [sys.executable, SCRIPTS / "gpu_bundle", "--build", self.root / "build", "--output", self.root / name, *words]
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)

    def unpacked(self, archive):
        target = self.root / "elsewhere"
        target.mkdir()
        packed = archive.read_bytes()
        tool = ["zstd", "-dc"] if archive.suffix == ".zst" else ["xz", "-dc"]
        tar = subprocess.run(tool, input=packed, capture_output=True, check=True).stdout
        subprocess.run(["tar", "-x", "-C", target], input=tar, check=True)
        return target / BUNDLE

    def archive(self, name="b.tar.zst"):
        return next(path for path in (self.root / name, self.root / name.replace(".zst", ".xz")) if path.is_file())

    def test_packs_programs_their_libraries_and_what_they_read(self):
        done = self.bundle("b.tar.zst")
        self.assertEqual(done.returncode, 0, done.stderr)
        root = self.unpacked(self.archive())
        files = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
        self.assertLessEqual({"MANIFEST.json", "build/cuda/bin/test_part", "lib/libpart.so.1", "scripts/gpu_check",
                              "scripts/gpu_libraries.py", "tests/skips.txt", "configs/quickstart.yaml",
                              "bench/train_bench_torch.py"}, files)
        self.assertFalse([name for name in files if name.endswith((".cpp", ".cu", ".h", "unrelated")) or "libc.so" in name])
        manifest = json.loads((root / "MANIFEST.json").read_text(encoding="utf-8"))
        self.assertEqual(set(manifest["files"]) | {"MANIFEST.json"}, files)
        self.assertEqual(manifest["root"], str(SCRIPTS.parent))

    def test_is_the_same_twice(self):
        self.bundle("b.tar.zst")
        self.bundle("c.tar.zst")
        self.assertEqual(self.archive("b.tar.zst").read_bytes(), self.archive("c.tar.zst").read_bytes())

    def test_runs_where_the_build_is_not(self):
        self.bundle("b.tar.zst")
        root = self.unpacked(self.archive())
        shutil.rmtree(self.root / "build")
        done = subprocess.run([sys.executable, root / "scripts" / "gpu_check", "--part", "tests", "--out", self.root / "out"],
                              capture_output=True, text=True, check=False)
        # It starts, with the packed library; no GoogleTest program, it leaves no report.
        self.assertIn("test_part: failed", done.stdout, done.stderr)
        self.assertIn("it left no report", done.stdout)

    def test_is_refused_above_a_limit(self):
        done = self.bundle("b.tar.zst", "--unpacked-limit", "0.001")
        self.assertEqual(done.returncode, 1)
        self.assertIn("above a limit", done.stderr)
        self.assertFalse(list(self.root.glob("b.tar.*")))

    def test_names_a_library_that_is_missing_here(self):
        (self.root / "build" / "own" / "libpart.so.1").unlink()
        done = self.bundle("b.tar.zst")
        self.assertEqual(done.returncode, 1)
        self.assertIn("test_part needs libpart.so.1, which this machine does not have", done.stderr)

    def test_refuses_a_build_for_another_gpu_and_an_empty_one(self):
        (self.root / "build" / "CMakeCache.txt").write_text("CMAKE_CUDA_ARCHITECTURES:STRING=80\n", encoding="utf-8")
        self.assertIn("was built for sm_80; asked for is 90", self.bundle("b.tar.zst").stderr)
        self.assertEqual(self.bundle("b.tar.zst", "--architectures", "80").returncode, 0)
        (self.root / "build" / "bin" / "test_part").unlink()
        self.assertIn("build it first", self.bundle("b.tar.zst", "--architectures", "80").stderr)


if __name__ == "__main__":
    unittest.main()
