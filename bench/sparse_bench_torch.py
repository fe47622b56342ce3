"""The Python side of sparse_bench: PyTorch's product of rows with a sparse matrix, y = x W^T, with weights that tessera made.

Usage: sparse_bench_torch.py FOLDER [--threads N]
FOLDER has product.safetensors: x [rows, in] and weight [out, in], whose zeros are what is not kept. Its commands are those of
torch_side.Modes; the values are every 97th of y. What is in CSR form is made before anything is timed. A mode is how the product
is called:
  outside   W times x^T, laid out before the timing
  inside    W times x^T, laid out anew in every call
  view      W times x^T, a view of x
  rows      x times a CSR form of W^T
  linear    F.linear(x, W)
The first three give y^T, which is taken as it lies. "-int32" has indices of 32 bits, else they have 64. A further mode, "dense", is
F.linear with W as it is; it is no rival.
"""
import pathlib
import sys
import time
import warnings

import torch_side  # answers {"missing": ...} and ends without torch

import torch
from torch.nn import functional
from torch_side import load_tessera, sampled

warnings.simplefilter("ignore")  # each process says that CSR matrices are in beta state
NARROW = "-int32"
MODES = ["outside", "outside-int32", "inside", "inside-int32", "view", "rows", "linear"]  # some of the last take seconds


def csr(matrix, indices):
    found = matrix.to_sparse_csr()
    return torch.sparse_csr_tensor(found.crow_indices().to(indices), found.col_indices().to(indices), found.values(), found.shape)


class Product(torch_side.Modes):
    def __init__(self, tensors):
        super().__init__()
        self.x, self.weight = tensors["x"], tensors["weight"]

    def build(self, mode):
        x, weight = self.x, self.weight
        if mode == "dense":
            return lambda: functional.linear(x, weight)
        call = mode.removesuffix(NARROW)
        indices = torch.int64 if call == mode else torch.int32
        sparse = csr(weight.T.contiguous() if call == "rows" else weight, indices)
        columns = x.T.contiguous()
        return {"linear": lambda: functional.linear(x, sparse), "rows": lambda: torch.mm(x, sparse),
                "view": lambda: torch.sparse.mm(sparse, x.T).T, "inside": lambda: torch.sparse.mm(sparse, x.T.contiguous()).T,
                "outside": lambda: torch.sparse.mm(sparse, columns).T}[call]

    def once(self, product):
        with torch.no_grad():  # under inference_mode a CSR matrix has no transposed one
            start = time.perf_counter()
            y = product()
            return (time.perf_counter() - start) * 1e3, y

    def values(self, mode):
        try:
            return {"values": sampled(self.run(mode)[1])}  # nothing is compiled: once is enough
        except RuntimeError as error:  # not every version knows each way
            return {"failed": str(error)[:500]}


if __name__ == "__main__":
    TENSORS = load_tessera.read_safetensors(pathlib.Path(sys.argv[1]) / "product.safetensors")
    torch_side.serve(lambda options, layout: Product(TENSORS).commands(), modes=MODES)
