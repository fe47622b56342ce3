#!/usr/bin/env python3
"""Which measured tables are of older code: has what they depend on changed since the commit that their lines name?

Usage: stale_tables.py [ROOT]
Lists the tables of docs/benchmarks.md and of configs/tables/results, and the last runs of programs without a table, one a line:
name, commit, and how many files of those that the table depends on differ from that commit's, or `current`. The files are those of
the checkout, changes and new files that are not committed included. A table depends on how everything is built, BUILD, on the
folders in DEPENDS, and one of `tessera reproduce` on the experiments of its arms too. A change of a comment counts. Figures of a GPU
are not listed: docs/gpu-status.md names their commits.
Exit status: 0 all are current, 1 some are not, or name a commit that is not in the repository, 2 a line cannot be used.
"""
import argparse
import functools
import json
import pathlib
import re
import subprocess
import sys

from benchmark_results import Unusable, results
from benchmark_tables import REPRODUCED, tables_by_program

BUILD = ("CMakeLists.txt", "CMakePresets.json", "cmake")
# What the tables of a program, and those of `tessera reproduce`, are measured with.
DEPENDS = {
    "train_bench": ("core", "layers", "optim", "compress", "train", "bench"),
    "infer_bench": ("core", "layers", "train", "bench"),
    "decode_bench": ("core", "layers", "compress", "bench"),
    "op_bench": ("core", "optim", "bench"),
    "factored_bench": ("core", "layers", "compress", "bench"),
    "linalg_bench": ("core", "bench"),
    "sparse_bench": ("core", "layers", "compress", "bench"),
    "attention_bench": ("core", "bench"),
    "loader_bench": ("core", "train", "bench"),
    "outlet_bench": ("core", "layers", "compress", "train", "capi", "bench"),
    "ranks_bench": ("core", "layers", "optim", "train", "bench"),
    "veto_bench": ("core", "layers", "compress", "train", "bench"),
    "onednn_versions": ("bench/onednn_versions.cpp", "scripts/onednn_versions"),
    REPRODUCED: ("core", "layers", "optim", "admm", "compress", "train"),
}
UNTABLED = ("ranks_bench", "veto_bench", "onednn_versions")
# In these folders: what no table of a CPU runs, and files of one program, bench/decode_bench.cpp and bench/decode_bench_torch.py.
NOT_RUN = re.compile(r".*\.(md|cuh?)$|core/cuda/|bench/results/")
OF_A_PROGRAM = re.compile(r"bench/([a-z_]+_bench|onednn_versions)[._]")
EXPERIMENT = re.compile(r"\bexperiment:\s*[\"']?([^\s,}\"']+)")  # of an arm in a table file


def git(root, *words):
    """The lines that git prints; none where it fails, with its exit status."""
    done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()


@functools.cache
def changed_files(root, commit, paths):
    """The files under BUILD and `paths` that are other than in the commit; None where the repository lacks it."""
    if git(root, "cat-file", "-e", commit + "^{commit}")[0] != 0:
        return None
    status, files = git(root, "diff", "--name-only", commit, "--", *BUILD, *paths)
    if status != 0:
        raise Unusable(f"git diff {commit} failed")
    status, new = git(root, "ls-files", "--others", "--exclude-standard", "--", *BUILD, *paths)
    if status != 0:
        raise Unusable("git ls-files failed")
    return frozenset([*files, *new])


def measured_with(file, program):
    own = OF_A_PROGRAM.match(file)
    return not NOT_RUN.match(file) and (own is None or own[1] == program)


def benchmark_tables(root):
    """(name, its commits, the files that differ or None) of each table of docs/benchmarks.md."""
    for program, tables in tables_by_program(root).items():
        for table in tables:
            commits = list(dict.fromkeys(line["commit"] for line in table.lines))
            yield f"{program}: {table.name}", commits, differing(root, commits, DEPENDS[program], program)


def runs_without_table(root):
    """The same of the last run of each program whose figures stand in docs/roadmap.md alone."""
    for program in UNTABLED:
        newest = {line.value.get("part"): line["commit"] for line in results(root, program)}  # parts are run one by one
        commits = list(dict.fromkeys(newest.values()))
        if commits:
            yield program, commits, differing(root, commits, DEPENDS[program], program)


def commits_in(value):
    """All values of keys `commit`, wherever they stand."""
    if isinstance(value, dict):
        yield from (text for key, text in value.items() if key == "commit" and isinstance(text, str))
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from commits_in(item)


def reproduced_tables(root):
    """The same of each table of configs/tables/results."""
    for path in sorted((root / REPRODUCED).glob("*.json")):
        try:
            commits = list(dict.fromkeys(commits_in(json.loads(path.read_text(encoding="utf-8")))))
        except ValueError as error:
            raise Unusable(f"{path}: not JSON: {error}") from error
        if not commits:
            raise Unusable(f"{path}: names no commit")
        yield path.stem, commits, differing(root, commits, (*DEPENDS[REPRODUCED], *table_files(root, path.stem)))


def table_files(root, name):
    """The file of a table of `tessera reproduce`, and the experiments of its arms."""
    folder = pathlib.PurePosixPath(REPRODUCED).parent
    own = folder / f"{name}.yaml"
    text = (root / own).read_text(encoding="utf-8") if (root / own).exists() else ""
    return str(own), *sorted({str(folder / experiment) for experiment in EXPERIMENT.findall(text)})


def differing(root, commits, paths, program=""):
    """The files that differ from one of the commits. A commit with changes on top ("-dirty") counts as the commit itself."""
    found = set()
    for commit in commits:
        files = changed_files(root, commit.removesuffix("-dirty"), paths)
        if files is None:
            return None
        found.update(file for file in files if measured_with(file, program))
    return found


def state_of(files):
    if files is None:
        return "the commit is not in this repository"
    return f"{len(files)} file{'' if len(files) == 1 else 's'} changed" if files else "current"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    root = parser.parse_args().root
    stale = False
    try:
        for name, commits, files in [*benchmark_tables(root), *runs_without_table(root), *reproduced_tables(root)]:
            print(f"{name}: {', '.join(commits)}: {state_of(files)}")
            stale = stale or files is None or bool(files)
    except (Unusable, OSError) as error:
        print(f"stale_tables: {error}", file=sys.stderr)
        return 2
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
