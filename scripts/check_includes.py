#!/usr/bin/env python3
"""Refuses an #include against the direction of the tree, and a type that two headers define.

core <- layers <- compress <- admm <- train <- {capi, cli, bench, examples, tests} and core <- optim <- train; layers and optim
do not see each other. include/, what programs in C see, stands alone. Inside a folder its rooms have an order too, and no header includes itself through others. A library outside is named only by its wrapper folder: no other header includes it, reaches it through
headers of ours, or names one of its types. Every quoted include must exist, as a file or as the template that CMake makes it
from. No two headers define a type of one name: the linker would take one type's functions for the other, without a word.

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
    "include": set(),
    "capi": PROGRAMS | {"include"},
    "cli": PROGRAMS,
    "bench": PROGRAMS | {"include"},
    "examples": PROGRAMS,
    "tests": PROGRAMS | {"include", "cli", "bench"},
}

CUDA_FILES = ("core/cuda/*", "*.cu", "*.cuh", "bench/rivals/cu*_rival.*", "tests/core/cuda/*", "tests/simulated_gpu/*")
# (header pattern, files that may include it, what the library is)
WRAPPED = (
    (r"(oneapi/dnnl/|dnnl)", ("core/cpu/*", "core/ops/*_cpu.cpp", "bench/*", "tests/core/cpu/*"), "oneDNN"),
    (r"yaml-cpp/", ("train/config/*", "tests/train/config/*"), "yaml-cpp"),
    (r"(Eigen|unsupported/Eigen)/", ("core/linalg/*", "core/cpu/*", "tests/core/linalg/*", "tests/support/*",
                                       "tests/simulated_gpu/*"), "Eigen"),
    (r"(jpeglib\.h|jerror\.h|png\.h)", ("train/data/*.cpp", "tests/support/*.cpp"), "libjpeg and libpng"),
    (r"sentencepiece", ("train/data/text/sentencepiece_tokenizer.cpp",), "SentencePiece"),
    (r"utf8proc\.h", ("train/data/text/unicode.cpp",), "utf8proc"),
    (r"nlohmann/", ("*.cpp",), "nlohmann-json"),
    (r"CLI/", ("cli/*",), "CLI11"),
    (r"mpi\.h", ("core/comm/heartbeat.cpp", "core/comm/mpi_communicator.cpp", "tests/simulated_gpu/nccl.cpp"), "MPI"),
    (r"nccl\.h", ("core/cuda/comm/nccl_sums.cpp", "tests/simulated_gpu/nccl.cpp"), "NCCL"),
    (r"(cuda|cublas|cudnn|cusolver|cusparse|curand|nvtx|thrust/|cub/|cooperative_groups)", CUDA_FILES, "CUDA"),
)

# What a header outside the wrapper may not say, forward declarations included.
TYPES = {
    "oneDNN": r"\b(dnnl|dnnl_\w+_t)\b",
    "yaml-cpp": r"\bYAML\b",
    "Eigen": r"\bEigen\b",
    "libjpeg and libpng": r"\b(jpeg_\w+_struct|j_(de)?compress_ptr|png_\w+p)\b",
    "SentencePiece": r"\bsentencepiece\s*::",
    "utf8proc": r"\butf8proc_\w+",
    "nlohmann-json": r"\bnlohmann\b",
    "CLI11": r"\bCLI\s*::|\bnamespace\s+CLI\b",
    "MPI": r"\bMPI_\w+",
    "NCCL": r"\bnccl[A-Z]\w*",
    "CUDA": r"\b((cuda|cublas|cudnn|cusolver|cusparse|curand|nvtx)[A-Z]\w*|CU[a-z]\w*)\b",
}

HEADERS = {".h", ".hpp", ".inc"}
SOURCES = {".h", ".hpp", ".cpp", ".cu", ".cuh", ".inc"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
NAMESPACE = re.compile(r"^namespace (\w[\w:]*) \{$")
DEFINED_TYPE = re.compile(r"^(?:template <.*> )?(?:struct|class|enum class) (\w+)(?: final)?(?: : .*)? \{")


# Inside these folders a room includes itself and the rooms of the lines above it; rooms of one line may include each other. "" is
# the folder's own files. Headers *_math.h are formulas that kernels of every room share, and stand outside of the order.
ROOMS = {
    "core": ("support", "config", ("", "device"), "io", "comm", "cpu", "cuda/runtime", "cuda/kernel", "cuda/libraries",
             ("cuda/core_conv", "cuda/tucker_conv", "cuda/sparse"), "autograd", "cuda/comm", ("ops", "linalg"), "nn"),
    "compress": ("timing", "formats", "patterns", "ranks", "prune", ""),
    "train": ("config", ("checkpoint", "data"), "tasks", "", ("torch", "onnx"), "run", "generate", "plan", "report", "reproduce"),
}


def room(path):
    """The room of a file below one of the folders of ROOMS: "ops" of core/ops/relu.h."""
    parts = path.parts[1:-1]
    return "/".join(parts[:2] if parts[:1] == ("cuda",) else parts[:1])


def upward(path, header):
    """Why `path` may not include `header` of the same folder, or None."""
    rooms = ROOMS.get(path.parts[0])
    if rooms is None or header.endswith("_math.h"):
        return None
    heights = {name: i for i, line in enumerate(rooms) for name in ([line] if isinstance(line, str) else line)}
    source, target = room(path), room(pathlib.PurePosixPath(header))
    for name in (source, target):
        if name not in heights:
            return f"{path.parts[0]}/{name}/ has no place in ROOMS of scripts/check_includes.py"
    if heights[target] > heights[source]:
        return f"{path.parts[0]}/{target or '*'} stands above {path.parts[0]}/{source or '*'}"
    return None


def circles(root, files):
    """One complaint for each header that includes itself through others."""
    included = {}
    for file in files:
        if file.suffix in HEADERS | {".cuh"}:
            found = (INCLUDE.match(line) for line in read_lines(root / file))
            included[file.as_posix()] = [match.group(1) for match in found if match and match.group(1)]
    done, problems = set(), []

    def visit(header, trail):
        if header in trail:
            problems.append(f"{header}: includes itself: {' > '.join(trail[trail.index(header):] + [header])}")
        if header in trail or header in done:
            return
        for name in included.get(header, []):
            visit(name, trail + [header])
        done.add(header)

    for header in sorted(included):
        visit(header, [])
    return problems


def defined_twice(root, files):
    """One complaint for each type that another header has defined before, in the same namespace."""
    problems, first = [], {}
    for path in files:
        if path.suffix not in HEADERS | {".cuh"}:
            continue
        namespaces = []
        for number, line in enumerate(read_lines(root / path), start=1):
            if match := NAMESPACE.match(line):
                namespaces.append(match.group(1))
            elif line.startswith("}  // namespace") and namespaces:
                namespaces.pop()
            elif match := DEFINED_TYPE.match(line):
                name = "::".join([*namespaces, match.group(1)])
                if name in first and first[name] != path:
                    problems.append(f"{path}:{number}: {name} is defined in {first[name]} too")
                first.setdefault(name, path)
    return problems


def is_wrapper(path, files):
    return any(fnmatch.fnmatchcase(path.as_posix(), allowed) for allowed in files)


def read_lines(file):
    return file.read_text(encoding="utf-8").splitlines() if file.is_file() else []


def reached_library(root, path, header):
    """(library, the header of ours that includes it), reached from `path` through `header`, that path may not name; or None."""
    waiting, seen = [header], {header}
    while waiting:
        current = waiting.pop()
        for found in filter(None, map(INCLUDE.match, read_lines(root / current))):
            name = found.group(1) or found.group(2)
            for pattern, files, library in WRAPPED:
                if re.match(pattern, name) and not is_wrapper(path, files):
                    return library, current
            if found.group(1) and name not in seen:
                seen.add(name)
                waiting.append(name)
    return None


def named_type(path, line):
    """Why `path`, a header, may not say what stands in this line, or None."""
    code = re.sub(r'"(\\.|[^"\\])*"|//.*', "", line)
    for _, files, library in WRAPPED:
        if not is_wrapper(path, files) and (found := re.search(TYPES[library], code)):
            return f"{found.group(0)}: {library} is named only in {', '.join(files)}"
    return None


def complaint(root, path, quoted, angled):
    """Why `path` (relative to root) may not include this header, or None."""
    header = quoted or angled
    for pattern, files, library in WRAPPED:
        if re.match(pattern, header) and not is_wrapper(path, files):
            return f"{library} is named only in {', '.join(files)}"
    if quoted is None:
        return "our own headers are included with quotes" if (root / header).is_file() else None
    if not (root / header).is_file() and not (root / f"{header}.in").is_file():  # .in: generated by CMake
        return "no such file; paths start at the root of the repository"
    source, target = path.parts[0], pathlib.PurePosixPath(header).parts[0]
    if target != source and target not in MAY_INCLUDE.get(source, set()):
        return f"{source}/ may include only {', '.join(sorted(MAY_INCLUDE.get(source, set()) | {source}))}"
    if target == source and (why := upward(path, header)):
        return why
    if path.suffix in HEADERS and (reached := reached_library(root, path, header)):
        return f"brings {reached[0]} into a header, from {reached[1]}"
    return None


def check(root):
    """(problems as file:line: header: why, number of files read)."""
    problems, files = [], []
    for folder in sorted(MAY_INCLUDE):
        for file in sorted((root / folder).rglob("*")):
            path = file.relative_to(root)
            # The consumer is a project of its own, against the installed headers.
            if file.suffix not in SOURCES or path.parts[:2] == ("tests", "consumer"):
                continue
            files.append(path)
            for number, line in enumerate(read_lines(file), start=1):
                if found := INCLUDE.match(line):
                    if why := complaint(root, path, *found.groups()):
                        problems.append(f"{path}:{number}: {found.group(1) or found.group(2)}: {why}")
                elif file.suffix in HEADERS and (why := named_type(path, line)):
                    problems.append(f"{path}:{number}: {why}")
    return problems + circles(root, files) + defined_twice(root, files), len(files)


# (file, its only include, whether it is allowed)
SELF_TEST = (
    ("capi/arguments.h", '"include/tessera.h"', True),
    ("train/run/session.h", '"include/tessera.h"', False),
    ("include/tessera.h", '"core/shape.h"', False),
    ("core/tensor.h", '"core/shape.h"', True),
    ("core/tensor.h", '"core/device/dispatch.h"', True),
    ("core/tensor.h", '"core/ops/relu.h"', False),
    ("core/tensor.cpp", '"core/ops/relu.h"', False),
    ("core/autograd/backward.cpp", '"core/ops/relu.h"', False),
    ("core/nn/module.cpp", '"core/ops/relu.h"', True),
    ("core/device/staging.h", '"core/tensor.h"', True),
    ("core/support/log.h", '"core/config/value.h"', False),
    ("core/cuda/kernel/map.cuh", '"core/cuda/libraries/blas.h"', False),
    ("core/cuda/libraries/epilogue.cu", '"core/ops/relu_math.h"', True),
    ("core/cuda/stray/map.cuh", '"core/tensor.h"', False),
    ("compress/timing/clock.h", '"compress/pass.h"', False),
    ("train/run/session.h", '"train/report/table.h"', False),
    ("train/report/table.h", '"train/run/session.h"', True),
    ("core/linalg/svd.cpp", '"core/tensor.h"', True),
    ("core/ops/relu.h", '"core/tensor.h"', True),
    ("core/ops/relu.h", '"layers/linear.h"', False),
    ("core/nn/module.h", '"train/trainer.h"', False),
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
    ("core/linalg/svd_cpu.cpp", "<Eigen/SVD>", True),
    ("compress/pass.cpp", "<Eigen/Dense>", False),
    ("train/trainer.cpp", "<nlohmann/json.hpp>", True),
    ("train/trainer.h", "<nlohmann/json.hpp>", False),
    ("train/trainer.cpp", "<CLI/CLI.hpp>", False),
    ("train/data/png.cpp", "<png.h>", True),
    ("train/data/image.h", "<png.h>", False),
    ("train/trainer.cpp", "<jpeglib.h>", False),
    ("train/data/text/unicode.cpp", "<utf8proc.h>", True),
    ("train/data/text/tokenizer.cpp", "<utf8proc.h>", False),
    ("train/data/text/sentencepiece_tokenizer.cpp", "<sentencepiece_processor.h>", True),
    ("train/data/text/sentencepiece_tokenizer.h", "<sentencepiece_processor.h>", False),
    ("core/cuda/runtime/stream.cpp", "<cuda_runtime.h>", True),
    ("core/ops/relu_cuda.cu", "<cuda_runtime.h>", True),
    ("core/device/device.h", "<cuda_runtime.h>", False),
    ("bench/rivals/cudnn_rival.cpp", "<cudnn.h>", True),
    ("bench/rivals/cublas_rival.cpp", "<cublasLt.h>", True),
    ("bench/rivals/onednn_conv.cpp", "<cudnn.h>", False),
    ("bench/turns.h", "<cuda_runtime.h>", False),
    ("tests/core/cuda/stream_test.cpp", "<cuda_runtime.h>", True),
    ("tests/core/tensor_test.cpp", "<cuda_runtime.h>", False),
    ("core/tensor.h", "<cstddef>", True),
)

WRAPPER = {
    "core/cpu/onednn.h": "#include <dnnl.hpp>\n",
    "core/cpu/plan.h": '#include "core/cpu/onednn.h"\n',
    "train/config/node.h": "#include <yaml-cpp/yaml.h>\n",
    "core/cuda/runtime/stream.h": "#include <cuda_runtime.h>\n",
    "core/support/frame.h": "namespace tessera {\nstruct Frame {\n",
}
# (file beside those of WRAPPER, its text, the line complained about or None)
SELF_TEST_TYPES = (
    ("core/tensor.h", '\n#include "core/cpu/onednn.h"\n', 2),
    ("core/tensor.h", '#include "core/cpu/plan.h"\n', 1),
    ("layers/linear.cpp", '#include "core/cpu/plan.h"\n', None),
    ("core/cpu/gemm.h", '#include "core/cpu/plan.h"\n', None),
    ("train/trainer.h", '#include "train/config/node.h"\n', 1),
    ("train/config/reader.h", '#include "train/config/node.h"\n', None),
    ("core/device/device.h", '#include "core/cuda/runtime/stream.h"\n', 1),
    ("core/device/device.h", "\nvoid use(cudaStream_t stream);\n", 2),
    ("core/device/device.h", "struct CUstream_st;\n", 1),
    ("core/device/device.h", "// cudaStream_t is not named here\n", None),
    ("core/device/device.h", "namespace cuda { void map(); }\n", None),
    ("core/tensor.h", "namespace dnnl { class memory; }\n", 1),
    ("layers/linear.h", "dnnl_memory_desc_t layout;\n", 1),
    ("core/config/value.h", "namespace YAML { class Node; }\n", 1),
    ("train/config/yaml.h", "namespace YAML { class Node; }\n", None),
    ("train/trainer.h", 'const char* help = "YAML";\n', None),
    ("train/trainer.h", "Value from(const YAML::Node& node);\n", 1),
    ("train/trainer.cpp", "namespace YAML { class Node; }\n", None),
    ("core/cpu/onednn.h", '#include "core/cpu/plan.h"\n', 0),
    ("train/data/frame.h", "namespace tessera {\nclass Frame final : public Base {\n", 2),
    ("train/data/frame.h", "namespace tessera {\nnamespace plot {\nstruct Frame {\n", None),
    ("train/data/frame.cpp", "namespace tessera {\nstruct Frame {\n", None),
    ("train/data/frame.h", "namespace tessera {\nstruct Frame;\n", None),
)


def self_test_types():
    """Number of cases of SELF_TEST_TYPES that check() judges wrongly."""
    wrong = 0
    for name, text, line in SELF_TEST_TYPES:
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for file, content in {**WRAPPER, name: text}.items():
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                (root / file).write_text(content, encoding="utf-8")
            problems, _ = check(root)
        places = [":".join(problem.split(":")[:2]) for problem in problems]
        expected = [] if line is None else [f"{name}:{line}" if line else f"{name}: includes itself"]
        if places != expected:
            print(f"{name} with {text!r}: expected a complaint of line {line}, got {problems}")
            wrong += 1
    print(f"{len(SELF_TEST_TYPES) - wrong} of {len(SELF_TEST_TYPES)} headers judged rightly")
    return wrong


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
        return 1 if self_test() + self_test_types() else 0
    if len(arguments) > 1 or arguments[:1] == ["--help"]:
        print(__doc__)
        return 1
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    problems, count = check(root)
    print(*problems, sep="\n", end="\n" if problems else "")
    if count == 0:
        print(f"{root}: no source files below it")
        return 1
    print(f"{count} files, {len(problems)} complaints")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
