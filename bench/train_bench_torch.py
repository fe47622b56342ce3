"""PyTorch's side of train_bench: the same ResNet-20 step from the same weights and batches.

Reads commands on stdin, answers each with one JSON line on stdout:
  step K   runs K training steps      {"ms": [...], "loss": [...]}
  matmul   times 1024^3 in float32    {"gflops": x}
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
    import numpy as np
    import torch
    import torch.nn.functional as F
    from torch import nn
except ImportError as error:
    answer(missing=str(error))
    sys.exit(0)

DTYPES = {"F32": np.float32, "I64": np.int64}


def read_safetensors(path):
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:start]).items():
        if name == "__metadata__":
            continue
        begin, end = (start + offset for offset in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"])
        tensors[name] = torch.from_numpy(values.copy())
    return tensors


def conv3x3(inputs, outputs, stride):
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


class Block(nn.Module):
    """Two 3x3 convolutions; a shortcut that changes size takes every other pixel and pads channels on both sides."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = conv3x3(inputs, outputs, stride)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = conv3x3(outputs, outputs, 1)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.stride = stride
        self.extra = outputs - inputs

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = self.bn2(self.conv2(y))
        if self.extra:
            half = self.extra // 2
            x = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, half, self.extra - half))
        y += x
        return F.relu(y, inplace=True)


def stage(inputs, outputs, stride):
    return nn.Sequential(Block(inputs, outputs, stride), Block(outputs, outputs, 1), Block(outputs, outputs, 1))


class ResNet20(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = conv3x3(3, 16, 1)
        self.bn1 = nn.BatchNorm2d(16)
        self.layer1 = stage(16, 16, 1)
        self.layer2 = stage(16, 32, 2)
        self.layer3 = stage(32, 64, 2)
        self.fc = nn.Linear(64, 10)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)), inplace=True)
        x = self.layer3(self.layer2(self.layer1(x)))
        return self.fc(x.mean((2, 3)))


class Trainer:
    def __init__(self, folder, channels_last):
        layout = torch.channels_last if channels_last else torch.contiguous_format
        self.model = ResNet20().train()
        weights = read_safetensors(folder / "weights.safetensors")
        weights = {name: w.permute(0, 3, 1, 2) if w.dim() == 4 else w for name, w in weights.items()}
        parameters = dict(self.model.named_parameters())
        if parameters.keys() != weights.keys():
            raise ValueError(f"parameters differ: {sorted(parameters.keys() ^ weights.keys())}")
        with torch.no_grad():
            for name, parameter in parameters.items():
                parameter.copy_(weights[name])
        self.model = self.model.to(memory_format=layout)
        config = json.loads((folder / "config.json").read_text())
        self.optimizer = torch.optim.SGD(self.model.parameters(), foreach=True, **config)
        stored = read_safetensors(folder / "batches.safetensors")
        self.batches = [
            (stored[f"x{i}"].permute(0, 3, 1, 2).contiguous(memory_format=layout), stored[f"y{i}"])
            for i in range(len(stored) // 2)
        ]
        self.done = 0

    def step(self):
        x, y = self.batches[self.done % len(self.batches)]
        start = time.perf_counter()
        loss = F.cross_entropy(self.model(x), y)
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
        "blas": loaded_blas(),
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--channels-last", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    trainer = Trainer(options.folder, options.channels_last)
    answer(**describe_environment())
    for line in sys.stdin:
        words = line.split()
        if words[0] == "matmul":
            answer(gflops=matmul_gflops())
        else:
            steps = [trainer.step() for _ in range(int(words[1]))]
            answer(ms=[ms for ms, _ in steps], loss=[loss for _, loss in steps])


if __name__ == "__main__":
    main()
