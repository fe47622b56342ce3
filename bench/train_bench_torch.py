"""PyTorch's side of train_bench: the same training step from the same weights and batches.

Usage: train_bench_torch.py FOLDER [--threads N] [--channels-last] [--compiled] [--precision f32|bf16]
FOLDER is an export of tessera's with batches.safetensors (x0, y0, x1, ..., NHWC) and config.json (of SGD) in it. Its command
(torch_side.py) is
  step K    runs K training steps: {"ms": [...], "loss": [...]}
"""
import json
import time

import torch_side  # answers {"missing": ...} and ends without torch

import torch
import torch.nn.functional as F
from torch import nn
from torch_side import load_tessera


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


class Trainer:
    def __init__(self, folder, layout, compiled, precision):
        self.bf16 = precision == "bf16"
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

    def steps(self, count):
        done = [self.step() for _ in range(int(count))]
        return {"ms": [ms for ms, _ in done], "loss": [loss for _, loss in done]}


def commands(options, layout):
    return {"step": Trainer(options.folder, layout, options.compiled, options.precision).steps}


if __name__ == "__main__":
    torch_side.serve(commands)
