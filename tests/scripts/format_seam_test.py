#!/usr/bin/env python3
"""Nothing above compress/formats knows a compressed form: neither its name, nor its layer's class."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FORMATS = ROOT / "compress" / "formats"
ABOVE = ("compress", "train", "cli")
# The experiment files that `tessera init` writes name a form, as any experiment file does. The operators of ONNX that a layer
# becomes are a table by its kind, in which a form has its place.
EXEMPT = {"cli/init.cpp", "train/onnx/emit_convolutions.cpp", "train/onnx/emit_simple.cpp", "train/onnx/emit_trains.cpp"}


def forms():
    """The stems of this folder that are forms: {"svd", "tucker2"}."""
    return {file.stem for file in FORMATS.glob("*.cpp")} - {"format", "builtin", "factored_conv", "mode_split", "sparse_layer"}


def sources():
    for folder in ABOVE:
        for file in sorted((ROOT / folder).rglob("*")):
            path = file.relative_to(ROOT).as_posix()
            if file.suffix in {".h", ".cpp"} and FORMATS not in file.parents and path not in EXEMPT:
                yield path, file.read_text(encoding="utf-8").splitlines()


def spellings(form):
    """spatial_svd, SpatialSvd, SPATIAL_SVD: as words of their own, or in front of other words. HOSVD and CPU are no forms."""
    name = re.sub(r"\d+$", "", form)
    camel = "".join(word.capitalize() for word in name.split("_"))
    return f"(?<![A-Za-z])(?:{name}(?![a-z])|{camel}(?![a-z])|{name.upper()}(?![A-Za-z]))"


def found(pattern):
    return [f"{path}:{number}: {line.strip()}" for path, lines in sources() for number, line in enumerate(lines, start=1)
            if re.search(pattern, line)]


class FormatSeam(unittest.TestCase):
    def test_forms_are_found(self):
        self.assertLessEqual({"cp", "spatial_svd", "svd", "tt", "tucker2"}, forms())

    def test_no_form_is_named_above_the_formats(self):
        self.assertEqual(found("|".join(spellings(form) for form in sorted(forms()))), [])

    def test_spellings(self):
        for line in ("tt", "TtFormat", "a TT", "format: tt,", "SpatialSvdConv2d", "spatial_svd", "Tucker2Conv2d", "Tucker-2", "CP form"):
            self.assertTrue(any(re.search(spellings(form), line) for form in forms()), line)
        for line in ("attach", "cpu", "CPU", "cpp", "HOSVD", "http", "Cpu"):
            self.assertFalse(any(re.search(spellings(form), line) for form in forms()), line)

    def test_no_compressed_layer_is_included_above_the_formats(self):
        compressed = [header.stem for header in sorted((ROOT / "layers").glob("*.h"))
                      if "public CompressedLayer" in header.read_text(encoding="utf-8")]
        self.assertGreaterEqual(len(compressed), 3)
        self.assertEqual(found("|".join(f"layers/{stem}\\.h" for stem in compressed)), [])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
