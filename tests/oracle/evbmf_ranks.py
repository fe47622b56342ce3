#!/usr/bin/env python3
"""Prints the ranks that a published implementation of EVBMF finds in the matrices of evbmf_test.cpp.

Usage: evbmf_ranks.py, with musco-pytorch 1.0.6, numpy and scipy of PyPI installed (pip install --no-deps musco-pytorch). It calls
EVBMF of musco/pytorch/compressor/rank_selection/vbmf.py, a port of the paper's authors' Matlab code. That file alone is loaded, because
the package needs others that no longer import.
"""
import importlib.metadata
import importlib.util

import numpy


def published():
    """The module of the installed package that has EVBMF."""
    distribution = importlib.metadata.distribution("musco-pytorch")
    file = next(path for path in distribution.files if path.name == "vbmf.py")
    spec = importlib.util.spec_from_file_location("vbmf", distribution.locate_file(file))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# rows, columns, rank of the signal, its size, size of the noise: as in evbmf_test.cpp.
MATRICES = [(40, 60, 0, 0.0, 1.0), (40, 60, 5, 8.0, 1.0), (90, 30, 7, 6.0, 0.5), (32, 32, 3, 2.0, 1.0), (64, 576, 20, 4.0, 1.0),
            (10, 400, 10, 50.0, 0.01), (100, 12, 4, 5.0, 0.2), (256, 256, 40, 3.0, 1.0)]


def uniform(i, j, seed):
    """In [-0.5, 0.5), a function of place and seed that every language computes alike to 1e-9."""
    x = numpy.sin(12.9898 * i + 78.233 * j + 37.719 * seed) * 43758.5453
    return x - numpy.floor(x) - 0.5


def matrix(rows, columns, rank, signal, noise):
    i, j = numpy.arange(rows), numpy.arange(columns)
    y = noise * uniform(i[:, None], j[None, :], 1)
    for k in range(rank):
        y += signal / (1 + k) * numpy.outer(uniform(i, k, 2), uniform(j, k, 3))
    return y


for shape in MATRICES:
    print(*shape, "->", len(published().EVBMF(matrix(*shape))[1]))
