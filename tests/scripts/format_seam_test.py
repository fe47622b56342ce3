#!/usr/bin/env python3
"""Nothing above compress/formats knows a compressed form: neither its name, nor its layer's class."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMATS = ROOT / "compress" / "formats"
ABOVE = ("compress", "train", "cli")
# The experiment files that `tessera init` writes name a form, as any experiment file does.
EXEMPT = {"cli/init.cpp"}


def forms():
    """The stems of this folder that are forms: {"svd", "tucker2"}."""
    return {file.stem for file in FORMATS.glob("*.cpp")} - {"format", "builtin"}


def sources():
    for folder in ABOVE:
        for file in sorted((ROOT / folder).rglob("*")):
            path = file.relative_to(ROOT).as_posix()
            if file.suffix in {".h", ".cpp"} and FORMATS not in file.parents and path not in EXEMPT:
                yield path, file.read_text(encoding="utf-8").splitlines()


def found(pattern):
    return [f"{path}:{number}: {line.strip()}" for path, lines in sources() for number, line in enumerate(lines, start=1)
            if re.search(pattern, line, re.IGNORECASE)]


class FormatSeam(unittest.TestCase):
    def test_forms_are_found(self):
        self.assertLessEqual({"svd", "tucker2"}, forms())

    def test_no_form_is_named_above_the_formats(self):
        names = sorted({re.sub(r"\d+$", "", form) for form in forms()})
        self.assertEqual(found("|".join(f"(?<![a-z]){name}" for name in names)), [])  # HOSVD is no form

    def test_no_compressed_layer_is_included_above_the_formats(self):
        compressed = [header.stem for header in sorted((ROOT / "layers").glob("*.h"))
                      if "public CompressedLayer" in header.read_text(encoding="utf-8")]
        self.assertGreaterEqual(len(compressed), 3)
        self.assertEqual(found("|".join(f"layers/{stem}\\.h" for stem in compressed)), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
