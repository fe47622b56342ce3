"""The Python side of op_bench: PyTorch's product y = a b of matrices that tessera made.

Usage: op_bench_torch.py FOLDER [--threads N]
FOLDER has product.safetensors: a [m, k] and b [k, n]. Its commands are those of torch_side.Modes; the values are every 97th of y.
A mode is how the product is called:
  matmul   into new memory in every call
  into     into the memory of the call before
  linear   F.linear(a, b^T), whose weight is laid out as [n, k] before the timing
"""
import pathlib
import sys
import time

import torch_side  # answers {"missing": ...} and ends without torch

import torch
from torch.nn import functional
from torch_side import load_tessera, sampled

MODES = ["matmul", "into", "linear"]


class Product(torch_side.Modes):
    def __init__(self, tensors):
        super().__init__()
        self.a, self.b = tensors["a"], tensors["b"]

    def build(self, mode):
        a, b = self.a, self.b
        if mode == "matmul":
            return lambda: torch.mm(a, b)
        if mode == "into":
            y = torch.empty(a.shape[0], b.shape[1])
            return lambda: torch.mm(a, b, out=y)
        weight = b.T.contiguous()
        return lambda: functional.linear(a, weight)

    def once(self, product):
        with torch.inference_mode():
            start = time.perf_counter()
            y = product()
            return (time.perf_counter() - start) * 1e3, y

    def values(self, mode):
        failed = self.warm_up(mode)
        return failed or {"values": sampled(self.run(mode)[1])}


if __name__ == "__main__":
    TENSORS = load_tessera.read_safetensors(pathlib.Path(sys.argv[1]) / "product.safetensors")
    torch_side.serve(lambda options, layout: Product(TENSORS).commands(), modes=MODES)
