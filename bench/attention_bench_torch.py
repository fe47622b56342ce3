"""The Python side of attention_bench: PyTorch's causal attention, forward and backward, of operands that tessera made.

Usage: attention_bench_torch.py FOLDER [--threads N]
FOLDER has attention.safetensors: q, k, v and grad_y, [1, positions, heads, width] each. Its commands are those of torch_side.Modes;
the values are every 97th of the gradient of q. A mode is how attention is called:
  heads-first   scaled_dot_product_attention on operands that lie as [1, heads, positions, width], laid out before the timing
  as-is         the same on views of the operands
  products      softmax between two products, for versions that have nothing else
"""
import math
import pathlib
import sys
import time

import torch_side  # answers {"missing": ...} and ends without torch

import torch
from torch.nn import functional
from torch_side import load_tessera, sampled

MODES = ["heads-first", "as-is", "products"]


def products(q, k, v):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    behind = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
    return scores.masked_fill(behind, -math.inf).softmax(-1) @ v


def fused(q, k, v):
    return functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Attention(torch_side.Modes):
    def __init__(self, tensors):
        super().__init__()
        self.operands = [tensors[name] for name in ("q", "k", "v", "grad_y")]

    def build(self, mode):
        turned = [x.transpose(1, 2) for x in self.operands]
        *inputs, grad = turned if mode == "as-is" else [x.contiguous() for x in turned]
        inputs = [x.detach().requires_grad_() for x in inputs]
        attention = products if mode == "products" else fused

        def step():
            attention(*inputs).backward(grad)
            return inputs[0].grad

        def clear():
            for x in inputs:
                x.grad = None

        return step, clear

    def once(self, built):
        step, clear = built
        clear()
        start = time.perf_counter()
        grad = step()
        return (time.perf_counter() - start) * 1e3, grad

    def values(self, mode):
        failed = self.warm_up(mode)
        return failed or {"values": sampled(self.run(mode)[1].transpose(1, 2))}


if __name__ == "__main__":
    TENSORS = load_tessera.read_safetensors(pathlib.Path(sys.argv[1]) / "attention.safetensors")
    torch_side.serve(lambda options, layout: Attention(TENSORS).commands(), modes=MODES)
