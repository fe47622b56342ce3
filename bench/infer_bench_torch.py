"""PyTorch's side of infer_bench: an exported network, its batch norms folded into convolutions, answering one batch.

Usage: infer_bench_torch.py FOLDER [--threads N] [--channels-last]
FOLDER is an export of tessera's with x.safetensors (x, NHWC) in it. Its commands are those of torch_side.Modes; the values are
the logits, row by row. The modes that the version should know are `modes` in its first line: eager = folded by torch.fx,
operations in place; frozen = that traced and frozen; optimized = and optimize_for_inference; compiled = torch.compile of the
first with constant weights.
"""
import operator
import time

import torch_side  # answers {"missing": ...} and ends without torch

import torch
import torch.nn.functional as F
from torch import nn
from torch.fx.experimental import optimization
from torch_side import load_tessera

MODES = ["eager", "frozen", "optimized"] + (["compiled"] if hasattr(torch, "compile") else [])


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


class Network(torch_side.Modes):
    def __init__(self, folder, layout):
        super().__init__()
        self.x = load_tessera.read_safetensors(folder / "x.safetensors")["x"].permute(0, 3, 1, 2).contiguous(memory_format=layout)
        self.eager = folded(load_tessera.load(folder)).to(memory_format=layout)

    def frozen(self):
        # A trace for each caller: optimising changes the graph in place.
        return torch.jit.freeze(torch.jit.trace(self.eager, self.x))

    @torch.inference_mode()
    def build(self, mode):
        if mode == "eager":
            return self.eager
        if mode == "frozen":
            return self.frozen()
        if mode == "optimized":
            return torch.jit.optimize_for_inference(self.frozen())
        return torch.compile(self.eager, options={"freezing": True})

    @torch.inference_mode()
    def once(self, network):
        start = time.perf_counter()
        y = network(self.x)
        return (time.perf_counter() - start) * 1e3, y


def commands(options, layout):
    return Network(options.folder, layout).commands()


if __name__ == "__main__":
    torch_side.serve(commands, modes=MODES)
