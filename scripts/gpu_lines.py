"""The lines of scripts/gpu_check: what each part runs, and how long each may take."""
import dataclasses
import os
import pathlib
import subprocess

import gpu_libraries
import gpu_results

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Programs of many or long cases, in pieces that run side by side.
SHARDS = {"test_end_to_end": 4, "test_end_to_end_kill": 4, "test_core_ops": 2,
          "test_cuda_core": 2, "test_cuda_end_to_end": 4, "test_train": 2, "test_train_checkpoint": 3}
# (program, seconds under each check). Kernels of our own; test_cuda_bench runs those of libraries for the most part.
SANITIZED = (("test_cuda_core", 170), ("test_cuda_tucker_conv", 40), ("test_cuda_train", 30), ("test_cuda_optim", 20))
# Suites of a GPU, without the checks of the op table that only repeat its kernels.
KERNEL_TESTS = "Cuda*.*:-Cuda/OpTable.RunsGive*:Cuda/OpTable.InputsAnd*:Cuda/OpTable.CanBeRecorded/*"
CLOCK_TESTS = ("test_compress_clock",)  # need a quiet machine, and no GPU
# (name, words behind --part, seconds). A line appends its rows as it goes: one that is cut short leaves what it measured.
BENCHES = (
    ("core", ("core",), 90),
    ("memory", ("memory",), 60),
    ("network", ("network",), 40),
    ("matmul", ("dense", "--only", "matmul"), 60),
    ("conv2d", ("dense", "--only", "conv2d"), 120),
)
# Model: (precision, seconds alone, seconds against PyTorch).
TRAINING = {"resnet20": ("f32", 20, 120), "resnet18": ("bf16", 50, 170), "resnet50": ("bf16", 80, 235)}


@dataclasses.dataclass
class Line:
    part: str
    name: str
    command: list
    limit: float  # seconds
    environment: dict = dataclasses.field(default_factory=dict)
    report: pathlib.Path = None  # of a GoogleTest program
    skipped: str = ""  # why it is not run


def test_lines(options, gpu):
    del gpu
    lines = []
    # Those of a GPU first, should the part's time not be enough for all.
    for program in sorted(options.bin.glob("test_*"),
                          key=lambda path: (not path.name.startswith("test_cuda_"), -SHARDS.get(path.name, 1), path.name)):
        if program.name in CLOCK_TESTS or not os.access(program, os.X_OK):
            continue
        shards = SHARDS.get(program.name, 1)
        for shard in range(shards):
            name = program.name if shards == 1 else f"{program.name}.{shard + 1}"
            report = options.out / "tests" / f"{name}.json"
            lines.append(Line("tests", name, [program, f"--gtest_output=json:{report}", "--gtest_brief=1"], 400,
                              {"GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)}, report))
    return lines


def bench_lines(options, gpu):
    del gpu
    results = ["--results", options.out / "cuda_op_bench.jsonl"]
    lines = [Line("bench", f"op-{name}", [options.bin / "cuda_op_bench", "--part", *words, *results], limit)
             for name, words, limit in BENCHES]
    lines += [Line("bench", f"train-{model}", [*train_command(options, model, precision), "--alone"], limit)
              for model, (precision, limit, _) in TRAINING.items()]
    return lines


def rival_lines(options, gpu):
    why = "" if gpu.get("why") else missing_torch(options.python)
    return [Line("rivals", f"torch-{model}", [*train_command(options, model, precision), "--python", options.python], limit,
                 skipped=why)
            for model, (precision, _, limit) in TRAINING.items()]


def train_command(options, model, precision):
    return [options.bin / "train_bench", "--device", "cuda", "--model", model, "--precision", precision,
            "--results", options.out / "train_bench.jsonl", "--script", ROOT / "bench" / "train_bench_torch.py"]


def missing_torch(python):
    """Why PyTorch cannot be the rival, or ""."""
    check = "import torch, sys; sys.exit(0 if torch.cuda.is_available() else 'torch sees no GPU')"
    try:
        done = subprocess.run([python, "-c", check], capture_output=True, text=True, timeout=120, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{python}: {error}"
    return "" if done.returncode == 0 else f"{python}: {gpu_results.last_line(done.stderr)}"


def sanitize_lines(options, gpu):
    del gpu
    tool = gpu_libraries.find_tool("compute-sanitizer")
    lines = []
    for name, limit in SANITIZED:
        program = options.bin / name
        for check in ("memcheck", "racecheck") if program.is_file() else ():
            command = [tool or "compute-sanitizer", "--tool", check, "--error-exitcode", "9", program,
                       f"--gtest_filter={KERNEL_TESTS}", "--gtest_brief=1"]
            lines.append(Line("sanitize", f"{check}-{name}", command, limit,
                              skipped="" if tool else "there is no compute-sanitizer"))
    return lines


MAKERS = {"tests": test_lines, "bench": bench_lines, "rivals": rival_lines, "sanitize": sanitize_lines}
