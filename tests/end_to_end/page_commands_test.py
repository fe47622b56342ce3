#!/usr/bin/env python3
"""The commands in the README and in docs/ are commands that the program has: each verb and each option in a ```sh block.
Of docs/tutorial.md the quick ones are run as well, in the order of the page, with the edits of files between them.

page_commands_test.py PROGRAM
"""
import functools
import os
import pathlib
import re
import shlex
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OPERATORS = set("();<>|&")
# What neither trains nor needs a run, and what the page edits files with.
QUICK = re.compile(r"mkdir |tessera (init|validate|plan|layers|data check) |sed |cat \.\./docs/|cat > ")
program = ""


def blocks(page):
    """The text of each ```sh block."""
    return re.findall(r"^```sh\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def statements(block):
    """The commands of a block, a here document with the command that reads it. Several on a line stay together."""
    found, end = [], None
    for line in block.replace("\\\n", " ").splitlines():
        if end is not None:
            found[-1] += "\n" + line
            end = None if line == end else end
        elif line.strip() and not line.startswith("#"):
            found.append(line)
            start = re.search(r"<<'(\w+)'", line)
            end = start.group(1) if start else None
    return found


def calls(statement):
    """The arguments of every call of tessera in a statement."""
    lexer = shlex.shlex(statement.split("\n")[0], posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    commands = [[]]
    for word in lexer:
        if word and set(word) <= OPERATORS:
            commands.append([])
        elif commands[-1] or not re.match(r"\w+=", word):  # variables of one command stand in front of it
            commands[-1].append(word)
    return [words[1:] for words in commands if words and words[0].split("/")[-1] == "tessera"]


@functools.cache
def options(*verb):
    """The options that a verb's help lists; none when there is no such verb."""
    asked = subprocess.run([program, *verb, "--help"], capture_output=True, text=True, check=False)
    if f"Usage: {' '.join(['tessera', *verb])} [" not in asked.stdout:  # the program's own, behind a word that it does not know
        return frozenset()
    listed = re.findall(r"^  (-\w)?,?(--[\w-]+)?", asked.stdout, re.MULTILINE)
    return frozenset(option for pair in listed for option in pair if option)


def errors_of(arguments):
    verb = arguments[:2] if arguments[:1] == ["data"] else arguments[:1]
    given = {word.split("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
    if not verb or verb[0].startswith("-"):
        return sorted(given - options())
    known = options(*verb)
    return sorted(given - known) if known else [f"no verb {' '.join(verb)}"]


def png(side, colour):
    """An image of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes(colour) * side) * side
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def draw_shapes(folder):
    """What examples/python/train_shapes.py leaves: images of four classes, each of another colour, and a file of weights."""
    number = 0
    for split, count in (("train", 20), ("test", 3)):
        for shape in ("circle", "hexagon", "square", "triangle"):
            (folder / "shapes" / split / shape).mkdir(parents=True)
            for i in range(count):
                number += 1
                (folder / "shapes" / split / shape / f"{i:03}.png").write_bytes(png(64, (number, 2 * number, 7)))
    (folder / "resnet18.safetensors").touch()


class PageCommands(unittest.TestCase):
    def test_verbs_and_options_are_known(self):
        wrong, seen = [], 0
        for page in PAGES:
            for statement in (statement for block in blocks(page) for statement in statements(block)):
                for arguments in calls(statement):
                    seen += 1
                    wrong += [f"{page.relative_to(ROOT)}: {statement}: {error}" for error in errors_of(arguments)]
        self.assertGreater(seen, 40)
        self.assertEqual(wrong, [])

    def test_blocks_are_shell(self):
        for block in blocks(TUTORIAL):
            parsed = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
            self.assertEqual((parsed.returncode, parsed.stderr), (0, ""), block)

    def test_programs_of_the_tutorial_are_there(self):
        named = re.findall(r"\.\./(examples/[\w/]+\.py)", TUTORIAL.read_text(encoding="utf-8"))
        self.assertIn("examples/python/load_tessera.py", named)
        for name in named:
            self.assertTrue((ROOT / name).is_file(), name)

    def test_quick_commands_of_the_tutorial_run(self):
        quick = [statement for block in blocks(TUTORIAL) for statement in statements(block) if QUICK.match(statement)]
        self.assertGreater(len(quick), 8)
        with tempfile.TemporaryDirectory() as folder:
            work, binaries = pathlib.Path(folder) / "tessera", pathlib.Path(folder) / "bin"
            work.mkdir()
            binaries.mkdir()
            (work / "docs").symlink_to(ROOT / "docs")
            (binaries / "tessera").symlink_to(program)
            environment = {**os.environ, "PATH": f"{binaries}:{os.environ['PATH']}", "TESSERA_CACHE": ""}
            for statement in quick:
                if statement.startswith("tessera init shapes "):
                    draw_shapes(work)
                edited = statement.split()[-1] if statement.startswith("sed") else ""
                before = (work / edited).read_text() if edited else ""
                done = subprocess.run(["bash", "-ec", statement], cwd=work, env=environment, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, f"{statement}\n{done.stdout}{done.stderr}")
                if statement.startswith("mkdir"):
                    work /= statement.split()[-1]
                for old, new in re.findall(r"s/(.*?)/(.*?)/", statement) if edited else ():
                    self.assertNotIn(new, before, statement)
                    self.assertIn(new, (work / edited).read_text(), f"{statement}: does not find {old}")

    def test_reading(self):
        self.assertEqual(statements("a\n# b\ncat > x <<'E'\nc: d\nE\ne \\\n  f\n"), ["a", "cat > x <<'E'\nc: d\nE", "e    f"])
        self.assertEqual(calls("A=1 tessera plan x.yaml | grep tessera; bin/tessera eval 'r 1' --at best  # --no"),
                         [["plan", "x.yaml"], ["eval", "r 1", "--at", "best"]])
        self.assertEqual(errors_of(["plan", "x.yaml", "--jsn"]), ["--jsn"])
        self.assertEqual(errors_of(["data", "check", "x.yaml", "--json"]), [])
        self.assertEqual(errors_of(["report", "r", "-o", "x.html"]), [])
        self.assertEqual(errors_of(["plam", "x.yaml"]), ["no verb plam"])


if __name__ == "__main__":
    program = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
