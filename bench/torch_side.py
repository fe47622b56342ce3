"""What PyTorch's sides of the benchmarks share: they read commands on stdin and answer each with one JSON line on stdout.

The first line, unasked, describes the environment, or is {"missing": reason} without torch: importing this module then ends the
program. Every side knows the commands
  matmul         {"gflops": x}, 1024^3 in float32, the best of several
  memory         peaks of resident memory: {"start_kib": before the network was built, "peak_kib": until now}; what Python imports
                 belongs to the start
"""
import argparse
import pathlib
import re
import sys
import time

from rival_answers import answer

try:
    import torch
except ImportError as error:
    answer(missing=str(error))
    sys.exit(0)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples" / "python"))
import load_tessera  # noqa: E402, F401: for the sides too


def matmul_gflops(size=1024, repeats=60):
    a, b = torch.rand(size, size), torch.rand(size, size)
    out = torch.empty(size, size)
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        torch.mm(a, b, out=out)
        best = min(best, time.perf_counter() - start)
    return 2e-9 * size**3 / best


def cpu_capability():
    """Which of ATen's builds of its own loops runs, e.g. AVX2; only the printed configuration tells."""
    found = re.search(r"CPU capability usage: (\S+)", torch.__config__.show())
    return found.group(1) if found else "unknown"


def loaded_blas():
    """The BLAS libraries mapped into this process, torch reports only that it calls a generic one: folder and name, which
    say what it is on any machine."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line or "mkl_rt" in line}
    return sorted("/".join(pathlib.PurePath(path).parts[-2:]) for path in paths)


def describe_gpu():
    if not torch.cuda.is_available():
        return {}
    return {"gpu": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}


def describe_environment():
    return {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "capability": cpu_capability(),
        "onednn": torch.backends.mkldnn.is_available(),
        "compiles": hasattr(torch, "compile"),
        "blas": loaded_blas(),
    }


def import_what_a_step_needs():
    """Takes a step of each optimiser. What torch imports with its first one, 158 MiB of 2.15, is then no memory of the network's."""
    parameter = torch.zeros(1, requires_grad=True)
    for optimiser in (torch.optim.SGD, torch.optim.AdamW):
        parameter.sum().backward()
        optimiser([parameter], lr=0.1).step()


def peak_kib():
    """The most memory that this process has held."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1))


SAMPLE = 97  # a prime: no axis is skipped


def sampled(values):
    """Every 97th, as tessera's side takes them (modes_rival.h)."""
    return values.flatten()[::SAMPLE].tolist()


class Modes:
    """Ways to compute the same, each built when it is first asked for. A subclass gives build(mode), and once(built): the
    milliseconds that it took and the values that it computed, the same for every way. Its commands are
      values MODE    {"values": [...]}
      time MODE K    {"ms": [...]} of K times
    and either answers {"failed": reason} where this torch cannot build the mode."""

    def __init__(self):
        self.built = {}

    def run(self, mode):
        if mode not in self.built:
            self.built[mode] = self.build(mode)
        return self.once(self.built[mode])

    def warm_up(self, mode):
        """Runs until nothing is compiled any more; the reason where that is not possible."""
        try:
            for _ in range(3):  # graphs are specialised in their first two runs
                self.run(mode)
        except Exception as error:  # whatever the version raises: the caller shows it and takes the other modes
            return {"failed": f"{type(error).__name__}: {error}"[:500]}
        return {}

    def values(self, mode):
        return self.warm_up(mode) or {"values": self.run(mode)[1].flatten().tolist()}

    def time(self, mode, count):
        failed = {} if mode in self.built else self.warm_up(mode)
        return failed or {"ms": [self.run(mode)[0] for _ in range(int(count))]}

    def commands(self):
        return {"values": self.values, "time": self.time}


def serve(make_commands, trains=False, **description):
    """Answers with `make_commands(options, layout)`: by a command's name, what takes its words and gives the fields of an answer.

    The options are the program's arguments: FOLDER [--threads N] [--channels-last] [--compiled] [--precision f32|tf32|bf16]
    [--device cpu|cuda] [--graphs]. `trains`: the memory of training steps will be asked for.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--precision", choices=("f32", "tf32", "bf16"), default="f32")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--graphs", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    if trains:
        import_what_a_step_needs()
        description = {"imported_first": True, **description}
    start = peak_kib()
    commands = {
        "matmul": lambda: {"gflops": matmul_gflops()},
        "memory": lambda: {"start_kib": start, "peak_kib": peak_kib()},
        **make_commands(options, layout),
    }
    if options.device == "cuda":
        description = {**describe_gpu(), **description}
    answer(**describe_environment(), **description)
    for line in sys.stdin:
        name, *words = line.split()
        answer(**commands[name](*words))
