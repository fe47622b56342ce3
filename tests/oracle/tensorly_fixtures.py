#!/usr/bin/env python3
"""Prints tests/oracle/tensorly.json: what TensorLy makes of small tensors, for tests/core/linalg/tensorly_test.cpp.

Usage: tests/oracle/tensorly_fixtures.py > tests/oracle/tensorly.json
       in a virtual environment: pip install tensorly==0.10.0 numpy==2.4.6 scipy==1.17.1

Tensors and starts are small integers of fixed seeds, so that both sides have the same ones to the bit. The versions are in the file,
under "made_with". Errors are relative, ||X - X~|| / ||X||; the first of a list is the start's, the next that after one sweep.
"""
import json
import platform

import numpy
import scipy
import tensorly
from tensorly.cp_tensor import cp_to_tensor
from tensorly.decomposition import parafac, partial_tucker, tensor_train
from tensorly.tenalg import mode_dot, multi_mode_dot
from tensorly.tenalg.svd import truncated_svd
from tensorly.tt_tensor import tt_to_tensor


def integers(shape, seed):
    return numpy.random.default_rng(seed).integers(-9, 10, size=shape).astype(numpy.float64)


def relative_error(approximation, tensor):
    return float(numpy.linalg.norm(approximation - tensor) / numpy.linalg.norm(tensor))


def whole(tensor):
    return [int(value) for value in tensor.reshape(-1)]


def decimals(tensor):
    return [round(float(value), 12) for value in tensor.reshape(-1)]


def case(tensor, **fields):
    return {"shape": list(tensor.shape), "tensor": whole(tensor), **fields}


def svd(shape, rank, seed):
    x = integers(shape, seed)
    u, s, vt = truncated_svd(x, n_eigenvecs=rank)
    return case(x, rank=rank, values=decimals(s), reconstruction=decimals((u * s) @ vt))


def tt_svd(shape, ranks, seed):
    x = integers(shape, seed)
    return case(x, ranks=ranks, reconstruction=decimals(tt_to_tensor(tensor_train(x, rank=[1, *ranks, 1]))))


def sequential_start(x, modes, ranks):
    """The sequentially truncated HOSVD, which tessera's HOOI starts from, of TensorLy's SVDs; its own start does not shrink x."""
    core, factors = x, []
    for mode, rank in zip(modes, ranks):
        factors.append(truncated_svd(tensorly.unfold(core, mode), n_eigenvecs=rank)[0])
        core = mode_dot(core, factors[-1].T, mode)
    return core, factors


def hooi(shape, modes, ranks, sweeps, seed):
    x = integers(shape, seed)
    core, factors = sequential_start(x, modes, ranks)
    start = relative_error(multi_mode_dot(core, factors, modes=modes), x)
    _, errors = partial_tucker(x, ranks, modes=modes, init=(core, factors), n_iter_max=sweeps, tol=0)
    return case(x, modes=modes, ranks=ranks, errors=[start, *map(float, errors)])


def cp(x, rank, sweeps, compared, seed):
    """parafac from integers with the last factor fitted to the others, which is the first thing that cp_als does with a start."""
    start = [integers((size, rank), seed + mode) for mode, size in enumerate(x.shape)]
    fitted = parafac(x, rank, init=(None, start), n_iter_max=1, tol=0, fixed_modes=list(range(x.ndim - 1)))
    _, errors = parafac(x, rank, init=fitted, n_iter_max=sweeps, tol=0, return_errors=True)
    errors = [relative_error(cp_to_tensor(fitted), x), *map(float, errors)]
    return case(x, rank=rank, start=[whole(factor) for factor in start], errors=errors[:compared + 1], sweeps=sweeps,
                final=errors[-1])


def nearly_collinear(shape, rank, seed):
    """A tensor whose components are alike: sums of outer products of vectors that differ in one entry."""
    factors = []
    for mode, size in enumerate(shape):
        common = numpy.repeat(integers((size, 1), seed + mode) + 10, rank, axis=1)
        factors.append(common + numpy.eye(size, rank))
    return numpy.rint(cp_to_tensor((None, factors)) / 10)


fixtures = {
    "made_with": {"python": platform.python_version(), "numpy": numpy.__version__, "scipy": scipy.__version__,
                  "tensorly": tensorly.__version__},
    "svd": [svd((5, 7), 3, 1), svd((11, 3), 2, 2), svd((4, 4), 1, 3)],
    "tt": [tt_svd((3, 4, 2, 3), [2, 3, 2], 11), tt_svd((5, 1, 7), [3, 2], 12)],
    "hooi": [hooi((7, 3, 3, 5), [0, 3], [3, 2], 8, 21), hooi((8, 1, 3, 6), [0, 3], [2, 3], 8, 22),
             hooi((5, 4, 6), [0, 1, 2], [2, 2, 3], 8, 23)],
    "cp": [cp(integers((6, 3, 3, 5), 31), 3, 300, 8, 41), cp(integers((4, 3, 3, 5), 32), 8, 300, 8, 51),
           cp(integers((7, 4, 6), 33), 5, 300, 8, 61), cp(nearly_collinear((6, 3, 3, 5), 3, 71), 3, 300, 8, 81)],
}

print("{\n" + f'"made_with": {json.dumps(fixtures.pop("made_with"))}', end="")
for name, cases in fixtures.items():
    lines = [",\n ".join(f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}" for key, value in one.items()) for one in cases]
    print(f',\n"{name}": [\n{{' + "},\n{".join(lines) + "}]", end="")
print("\n}")
