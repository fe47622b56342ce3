"""PyTorch's side of train_bench: the same training step from the same weights and batches.

Usage: train_bench_torch.py FOLDER [--threads N] [--channels-last] [--compiled]
FOLDER is an export of tessera's with batches.safetensors (x0, y0, x1, ..., NHWC) and config.json (of SGD) in it.
Reads commands on stdin, answers each with one JSON line on stdout:
  step K   runs K training steps      {"ms": [...], "loss": [...]}
  matmul   times 1024^3 in float32    {"gflops": x}
  memory   peaks of resident memory   {"start_kib": before the network was built, "peak_kib": until now}
The first line, unasked, describes the environment, or is {"missing": reason} without torch.
"""
import argparse
import json
import pathlib
import re
import sys
import time


def answer(**fields):
    print(json.dumps(fields), flush=True)


try:
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    answer(missing=str(error))
    sys.exit(0)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples" / "python"))
import load_tessera  # noqa: E402


class InPlaceBlock(load_tessera.ResidualBlock):
    """The same block, with rectifiers and the addition in place: what a user who counts milliseconds writes."""

    def forward(self, x):
        y = x
        for i in range(1, self.convolutions + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = F.relu(y, inplace=True) if i < self.convolutions else y
        y += self.shortcut(x)
        return F.relu(y, inplace=True)


def trainable(network):
    """An exported network in PyTorch's own classes and at its fastest."""
    for module in network.modules():
        if isinstance(module, load_tessera.BatchNorm):
            module.__class__ = nn.BatchNorm2d  # the class that compilers know
        if isinstance(module, load_tessera.ResidualBlock):
            module.__class__ = InPlaceBlock
        if isinstance(module, nn.ReLU):
            module.inplace = True
    return network.train()


def peak_kib():
    """The most memory that this process has held."""
    status = pathlib.Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1))


class Trainer:
    def __init__(self, folder, channels_last, compiled, precision):
        self.bf16 = precision == "bf16"
        layout = torch.channels_last if channels_last else torch.contiguous_format
        self.model = trainable(load_tessera.load(folder)).to(memory_format=layout)
        self.loss = torch.compile(self.loss_of) if compiled else self.loss_of
        config = json.loads((folder / "config.json").read_text())
        self.optimizer = torch.optim.SGD(self.model.parameters(), foreach=True, **config)
        stored = load_tessera.read_safetensors(folder / "batches.safetensors")
        self.batches = [
            (stored[f"x{i}"].permute(0, 3, 1, 2).contiguous(memory_format=layout), stored[f"y{i}"])
            for i in range(len(stored) // 2)
        ]
        self.done = 0

    def loss_of(self, x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            scores = self.model(x)
        return F.cross_entropy(scores.float(), y)

    def step(self):
        x, y = self.batches[self.done % len(self.batches)]
        start = time.perf_counter()
        loss = self.loss(x, y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        value = loss.item()
        self.done += 1
        return (time.perf_counter() - start) * 1e3, value


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
    """The BLAS libraries mapped into this process: torch reports only that it calls a generic one."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "blas" in line or "mkl_rt" in line}
    return sorted(paths)


def describe_environment():
    return {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "capability": cpu_capability(),
        "onednn": torch.backends.mkldnn.is_available(),
        "compiles": hasattr(torch, "compile"),
        "blas": loaded_blas(),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--compiled", action="store_true")
    parser.add_argument("--precision", choices=("f32", "bf16"), default="f32")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    start = peak_kib()
    trainer = Trainer(options.folder, options.channels_last, options.compiled, options.precision)
    answer(**describe_environment())
    for line in sys.stdin:
        words = line.split()
        if words[0] == "matmul":
            answer(gflops=matmul_gflops())
        elif words[0] == "memory":
            answer(start_kib=start, peak_kib=peak_kib())
        else:
            steps = [trainer.step() for _ in range(int(words[1]))]
            answer(ms=[ms for ms, _ in steps], loss=[loss for _, loss in steps])


if __name__ == "__main__":
    main()
