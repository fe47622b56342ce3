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
          "test_cuda_bench": 4, "test_cuda_core": 4, "test_cuda_end_to_end": 4, "test_train": 2, "test_train_checkpoint": 3}
# (program, seconds under each check). Kernels of our own; test_cuda_bench runs those of libraries for the most part.
SANITIZED = (("test_cuda_core", 400), ("test_cuda_tucker_conv", 200), ("test_cuda_train", 200), ("test_cuda_optim", 120))
# Calls that fail are no findings: tests ask for more memory than there is, libraries for symbols that a driver may lack.
# Races are looked for in our kernels, whose mangled names hold the namespace: those of libraries are slow to follow.
CHECKS = {"memcheck": ("--report-api-errors", "no"), "racecheck": ("--kernel-name", "kns=tessera")}
# Suites of a GPU, without the checks of the op table that only repeat its kernels.
KERNEL_TESTS = "Cuda*.*:-Cuda*/OpTable.RunsGive*:Cuda*/OpTable.InputsAnd*:Cuda*/OpTable.CanBeRecorded/*"
CLOCK_TESTS = ("test_compress_clock",)  # need a quiet machine, and no GPU
# (name, words behind --part, seconds). A line appends its rows as it goes: one that is cut short leaves what it measured. All
# limits together are more than a part has: the first lines get what they need, the last what is left.
BENCHES = (
    ("core", ("core",), 170),
    ("memory", ("memory",), 60),
    ("network", ("network",), 60),
    ("matmul", ("dense", "--only", "matmul"), 90),
    ("conv2d-bf16", ("dense", "--only", "conv2d", "--precision", "bf16"), 100),
    ("conv2d-f32", ("dense", "--only", "conv2d", "--precision", "f32"), 100),
)
# No target waits for these: they come behind the training.
UNTARGETED = (
    ("tucker", ("tucker",), 170),
    ("sparse-f32", ("sparse", "--precision", "f32"), 240),
    ("sparse-bf16", ("sparse", "--precision", "bf16"), 240),
    ("sparse-f16", ("sparse", "--precision", "f16"), 240),
)
# Model: (precision, seconds alone, seconds against PyTorch). A line gives its only row at its end; the rivals time our side too.
# Against PyTorch the limits together are more than a part has, for one that compiles slowly: 5 ways are swept, 3 take part.
TRAINING = {"resnet20": ("f32", 30, 180), "resnet18": ("bf16", 70, 220), "resnet50": ("bf16", 110, 330)}


@dataclasses.dataclass
class Line:
    part: str
    name: str
    command: list
    limit: float  # seconds
    environment: dict = dataclasses.field(default_factory=dict)
    report: pathlib.Path = None  # of a GoogleTest program
    skipped: str = ""  # why it is not run


def shards_of(program):
    """[(what the name of a line has behind the program's, its environment)]."""
    count = SHARDS.get(program, 1)
    return [("" if count == 1 else f".{shard + 1}", {"GTEST_TOTAL_SHARDS": str(count), "GTEST_SHARD_INDEX": str(shard)})
            for shard in range(count)]


def test_lines(options, gpu):
    del gpu
    lines = []
    # Those of a GPU first, should the part's time not be enough for all.
    for program in sorted(options.bin.glob("test_*"),
                          key=lambda path: (not path.name.startswith("test_cuda_"), -SHARDS.get(path.name, 1), path.name)):
        if program.name in CLOCK_TESTS or not os.access(program, os.X_OK):
            continue
        for suffix, environment in shards_of(program.name):
            name = program.name + suffix
            report = options.out / "tests" / f"{name}.json"
            lines.append(Line("tests", name, [program, f"--gtest_output=json:{report}", "--gtest_brief=1"], 400, environment,
                              report))
    return lines


def bench_lines(options, gpu):
    del gpu
    training = [Line("bench", f"train-{model}", [*train_command(options, model, precision), "--alone"], limit)
                for model, (precision, limit, _) in TRAINING.items()]
    return op_lines(options, BENCHES) + training + op_lines(options, UNTARGETED)


def op_lines(options, benches):
    results = ["--results", options.out / "cuda_op_bench.jsonl"]
    return [Line("bench", f"op-{name}", [options.bin / "cuda_op_bench", "--part", *words, *results], limit)
            for name, words, limit in benches]


def rival_lines(options, gpu):
    why = "" if gpu.get("why") else missing_torch(options.python)
    # What our programs find libraries by is not for PyTorch, whose process they start.
    environment = {"TESSERA_TORCH_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", "")}
    return [Line("rivals", f"torch-{model}", [*train_command(options, model, precision), "--python", options.python], limit,
                 environment, skipped=why)
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
    for program, limit in SANITIZED:
        for check, words in CHECKS.items() if (options.bin / program).is_file() else ():
            for suffix, environment in shards_of(program):
                name = f"{check}-{program}{suffix}"
                report = options.out / "sanitize" / f"{name}.json"
                command = [tool or "compute-sanitizer", "--tool", check, *words, "--error-exitcode", "9", options.bin / program,
                           f"--gtest_filter={KERNEL_TESTS}", f"--gtest_output=json:{report}", "--gtest_brief=1"]
                lines.append(Line("sanitize", name, command, limit, environment, report,
                                  "" if tool else "there is no compute-sanitizer"))
    return lines


MAKERS = {"tests": test_lines, "bench": bench_lines, "rivals": rival_lines, "sanitize": sanitize_lines}
