"""PyTorch's side of infer_bench: an exported network, its batch norms folded into convolutions, answering one batch.

Usage: infer_bench_torch.py FOLDER [--threads N] [--channels-last]
FOLDER is an export of tessera's with x.safetensors (x, NHWC) in it. Reads commands on stdin, answers each with one JSON line:
  logits MODE    {"logits": [...]}, row by row
  time MODE K    {"ms": [...]} of K forwards
  matmul         {"gflops": x}, 1024^3 in float32
MODE: eager = folded by torch.fx, operations in place; frozen = that traced and frozen; optimized = and optimize_for_inference.
The first line, unasked, describes the environment, or is {"missing": reason} without torch.
"""
import argparse
import operator
import pathlib
import sys
import time

from train_bench_torch import answer, describe_environment, matmul_gflops  # answers {"missing": ...} and ends without torch

import torch
import torch.nn.functional as F
from torch import nn
from torch.fx.experimental import optimization

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "examples" / "python"))
import load_tessera  # noqa: E402


def folded(network):
    """Convolutions that have taken up the batch norms behind them; rectifiers and additions overwrite their first operand."""
    for module in network.modules():
        if isinstance(module, load_tessera.BatchNorm):
            module.__class__ = nn.BatchNorm2d  # the class that torch.fx knows
        if isinstance(module, nn.ReLU):
            module.inplace = True
    fused = optimization.fuse(network)
    left = [name for name, module in fused.named_modules() if isinstance(module, nn.BatchNorm2d)]
    if left:
        raise ValueError(f"batch norms that were not folded: {left}")
    for node in fused.graph.nodes:
        if node.target is F.relu:
            node.kwargs = {"inplace": True}
        if node.target is operator.add:
            node.target = operator.iadd
    fused.recompile()
    return fused


class Modes:
    def __init__(self, folder, channels_last):
        layout = torch.channels_last if channels_last else torch.contiguous_format
        self.x = load_tessera.read_safetensors(folder / "x.safetensors")["x"].permute(0, 3, 1, 2).contiguous(memory_format=layout)
        self.modes = {"eager": folded(load_tessera.load(folder)).to(memory_format=layout)}

    def __getitem__(self, name):
        if name not in self.modes:
            if name == "frozen":
                self.modes[name] = torch.jit.freeze(torch.jit.trace(self["eager"], self.x))
            else:
                # A trace of its own: optimising changes the graph in place.
                self.modes[name] = torch.jit.optimize_for_inference(torch.jit.freeze(torch.jit.trace(self["eager"], self.x)))
        return self.modes[name]

    def run(self, name):
        start = time.perf_counter()
        y = self[name](self.x)
        return (time.perf_counter() - start) * 1e3, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--channels-last", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    answer(**describe_environment())
    with torch.inference_mode():
        modes = Modes(options.folder, options.channels_last)
        for line in sys.stdin:
            command, *rest = line.split()
            if command == "matmul":
                answer(gflops=matmul_gflops())
            elif command == "logits":
                answer(logits=modes.run(rest[0])[1].flatten().tolist())
            else:
                answer(ms=[modes.run(rest[0])[0] for _ in range(int(rest[1]))])


if __name__ == "__main__":
    main()
