#!/usr/bin/env python3
"""Refuses an #include against the direction of the tree.

core <- layers <- compress <- admm <- train <- {cli, bench, examples, tests} and core <- optim <- train; layers and optim
do not see each other. A library outside is named only by its wrapper folder. Every quoted include must exist.

Usage: check_includes.py [ROOT]      checks every C++ and CUDA file below ROOT (default: the repository)
       check_includes.py --self-test
Exit status: 0 when every include is allowed, 1 otherwise.
"""
import fnmatch
import pathlib
import re
import sys
import tempfile

PROGRAMS = {"core", "layers", "optim", "compress", "admm", "train"}
# Folder -> the folders that it may include, beside itself.
MAY_INCLUDE = {
    "core": set(),
    "layers": {"core"},
    "optim": {"core"},
    "compress": {"core", "layers"},
    "admm": {"core", "layers", "compress"},
    "train": {"core", "layers", "optim", "compress", "admm"},
    "cli": PROGRAMS,
    "bench": PROGRAMS,
    "examples": PROGRAMS,
    "tests": PROGRAMS | {"cli", "bench"},
}

CUDA_FILES = ("core/cuda/*", "*.cu", "*.cuh")
# (header pattern, files that may include it, what the library is)
WRAPPED = (
    (r"(oneapi/dnnl/|dnnl)", ("core/cpu/*", "core/ops/*_cpu.cpp", "bench/*", "tests/core/cpu/*"), "oneDNN"),
    (r"yaml-cpp/", ("train/config/*", "tests/train/config/*"), "yaml-cpp"),
    (r"(Eigen|unsupported/Eigen)/", ("core/linalg/*", "core/cpu/*", "tests/core/linalg/*", "tests/support/*"), "Eigen"),
    (r"nlohmann/", ("*.cpp",), "nlohmann-json"),
    (r"CLI/", ("cli/*",), "CLI11"),
    (r"(cuda|cublas|cudnn|cusolver|cusparse|curand|nvtx|thrust/|cub/|cooperative_groups)", CUDA_FILES, "CUDA"),
)

SOURCES = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')


def allowed_within_core(path, included):
    """core/*.h is what everything stands on: it may use subfolders' declarations, but no op except the dispatch macro."""
    is_root_header = path.parent.as_posix() == "core" and path.suffix == ".h"
    return not (is_root_header and included.startswith("core/ops/") and included != "core/ops/dispatch.h")


def complaint(root, path, quoted, angled):
    """Why `path` (relative to root) may not include this header, or None."""
    header = quoted or angled
    name = path.as_posix()
    for pattern, files, library in WRAPPED:
        if re.match(pattern, header) and not any(fnmatch.fnmatchcase(name, allowed) for allowed in files):
            return f"{library} is named only in {', '.join(files)}"
    if quoted is None:
        return "our own headers are included with quotes" if (root / header).is_file() else None
    if not (root / header).is_file():
        return "no such file; paths start at the root of the repository"
    source, target = path.parts[0], pathlib.PurePosixPath(header).parts[0]
    if target != source and target not in MAY_INCLUDE.get(source, set()):
        return f"{source}/ may include only {', '.join(sorted(MAY_INCLUDE.get(source, set()) | {source}))}"
    if not allowed_within_core(path, header):
        return "of core/ops/, headers in core/ may include only dispatch.h"
    return None


def check(root):
    """(problems as file:line: header: why, number of files read)."""
    problems, count = [], 0
    for folder in sorted(MAY_INCLUDE):
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root)
            # The consumer is a project of its own, against the installed headers.
            if file.suffix not in SOURCES or path.parts[:2] == ("tests", "consumer"):
                continue
            count += 1
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
                found = INCLUDE.match(line)
                why = complaint(root, path, *found.groups()) if found else None
                if why:
                    problems.append(f"{path}:{number}: {found.group(1) or found.group(2)}: {why}")
    return problems, count


# (file, its only include, whether it is allowed)
SELF_TEST = (
    ("core/tensor.h", '"core/shape.h"', True),
    ("core/tensor.h", '"core/ops/dispatch.h"', True),
    ("core/tensor.h", '"core/ops/relu.h"', False),
    ("core/tensor.cpp", '"core/ops/relu.h"', True),
    ("core/autograd/backward.cpp", '"core/ops/relu.h"', True),
    ("core/linalg/svd.cpp", '"core/tensor.h"', True),
    ("core/ops/relu.h", '"core/tensor.h"', True),
    ("core/ops/relu.h", '"layers/linear.h"', False),
    ("core/module.h", '"train/trainer.h"', False),
    ("layers/linear.h", '"core/ops/relu.h"', True),
    ("layers/linear.h", '"optim/sgd.h"', False),
    ("layers/linear.h", '"compress/pass.h"', False),
    ("optim/sgd.h", '"core/tensor.h"', True),
    ("optim/sgd.cpp", '"layers/linear.h"', False),
    ("compress/pass.h", '"layers/linear.h"', True),
    ("compress/pass.cpp", '"optim/sgd.h"', False),
    ("compress/pass.cpp", '"admm/hook.h"', False),
    ("admm/hook.h", '"compress/pass.h"', True),
    ("admm/hook.h", '"train/trainer.h"', False),
    ("train/trainer.h", '"optim/sgd.h"', True),
    ("train/trainer.h", '"cli/main.h"', False),
    ("cli/main.cpp", '"train/trainer.h"', True),
    ("examples/first.cpp", '"tests/support/naive.h"', False),
    ("tests/core/tensor_test.cpp", '"tests/support/naive.h"', True),
    ("core/tensor.h", '"core/no_such_file.h"', False),
    ("core/tensor.cpp", '"shape.h"', False),
    ("core/tensor.cpp", "<core/shape.h>", False),
    ("core/tensor.h", "<vector>", True),
    ("core/cpu/engine.h", "<dnnl.hpp>", True),
    ("core/cpu/engine.h", "<oneapi/dnnl/dnnl.hpp>", True),
    ("core/ops/matmul_cpu.cpp", "<dnnl.hpp>", True),
    ("core/ops/matmul.cpp", "<dnnl.hpp>", False),
    ("core/tensor.h", "<oneapi/dnnl/dnnl.hpp>", False),
    ("layers/linear.cpp", "<dnnl.hpp>", False),
    ("train/config/yaml.cpp", "<yaml-cpp/yaml.h>", True),
    ("train/trainer.cpp", "<yaml-cpp/yaml.h>", False),
    ("core/linalg/svd.cpp", "<Eigen/SVD>", True),
    ("compress/pass.cpp", "<Eigen/Dense>", False),
    ("train/trainer.cpp", "<nlohmann/json.hpp>", True),
    ("train/trainer.h", "<nlohmann/json.hpp>", False),
    ("train/trainer.cpp", "<CLI/CLI.hpp>", False),
    ("core/cuda/stream.cpp", "<cuda_runtime.h>", True),
    ("core/ops/relu_cuda.cu", "<cuda_runtime.h>", True),
    ("core/device.h", "<cuda_runtime.h>", False),
    ("core/tensor.h", "<cstddef>", True),
)


def self_test():
    """Number of cases of SELF_TEST that check() judges wrongly."""
    wrong = 0
    stubs = {name for name, _, _ in SELF_TEST} | {"core/shape.h", "tests/support/naive.h"}
    for name, header, allowed in SELF_TEST:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for stub in stubs:
                (root / stub).parent.mkdir(parents=True, exist_ok=True)
                (root / stub).write_text("", encoding="utf-8")
            for target in re.findall(r'"(\w+/(?!no_such)[^"]+)"', header):
                (root / target).parent.mkdir(parents=True, exist_ok=True)
                (root / target).touch()
            (root / name).write_text(f"#pragma once\n#include {header}\n", encoding="utf-8")
            problems, _ = check(root)
        expected = [] if allowed else [f"{name}:2: {header[1:-1]}"]
        if [": ".join(problem.split(": ")[:2]) for problem in problems] != expected:
            print(f"{name} with #include {header}: expected {'no complaint' if allowed else 'a complaint'}, got {problems}")
            wrong += 1
    print(f"{len(SELF_TEST) - wrong} of {len(SELF_TEST)} cases judged rightly")
    return wrong


def main(arguments):
    if arguments == ["--self-test"]:
        return 1 if self_test() else 0
    if len(arguments) > 1 or arguments[:1] == ["--help"]:
        print(__doc__)
        return 1
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    problems, count = check(root)
    print(*problems, sep="\n", end="\n" if problems else "")
    if count == 0:
        print(f"{root}: no source files below it")
        return 1
    print(f"{count} files, {len(problems)} forbidden includes")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
