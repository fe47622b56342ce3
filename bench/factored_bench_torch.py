"""The Python side of factored_bench: a factored layer of TensorLy-Torch's, or of PyTorch's, with factors that tessera made.

Usage: factored_bench_torch.py FOLDER [--threads N] [--channels-last]
FOLDER has layer.json (kind and config: those of tessera's layer; phase: forward or training) and layer.safetensors: x (NHWC or rows), grad_y of
y's shape, and the factors under tessera's names. Its commands are those of torch_side.Modes. The values are every 97th of y, or in
training of x's gradient, NHWC. A mode is an implementation of TensorLy-Torch's (factorized, reconstructed, mobilenet; linear: PyTorch's
own), alone or with torch.compile: compiled, or in inference frozen, which takes the weights for constants. Without TensorLy-Torch
its first line is {"missing": reason}, as without torch.
"""
import json
import pathlib
import sys
import time

import torch_side  # answers {"missing": ...} and ends without torch

import torch
from torch import nn
from torch_side import load_tessera, sampled

try:
    import tensorly
    import tltorch
except ImportError as error:
    torch_side.answer(missing=str(error))
    sys.exit(0)


class Convolution(nn.Module):
    """A FactorizedConv of padding "same", called as its forward calls it. That reads the geometry from NumPy arrays, which
    torch.compile refuses under inference."""

    def __init__(self, factorization, rank, channels, kernel, factors, implementation, **options):
        super().__init__()
        self.layer = tltorch.FactorizedConv(channels[0], channels[1], kernel, padding=[size // 2 for size in kernel], bias=False,
                                            factorization=factorization, rank=rank, implementation=implementation, **options)
        self.padding = [size // 2 for size in kernel]
        with torch.no_grad():
            for own, given in zip(self.layer.weight.factors, factors):
                own.copy_(given)

    def forward(self, x):
        return self.layer.forward_fun(x, self.layer.weight(), bias=None, stride=[1, 1], padding=self.padding, dilation=[1, 1])


def tucker(factors, implementation):
    """Tucker on the channels. TensorLy-Torch has factors of the window too; they are the identity and not trained."""
    core = factors["core"].permute(0, 3, 1, 2)
    out_factor, in_factor = factors["out_factor"].flatten(1), factors["in_factor"].flatten(1).T
    kernel = tuple(core.shape[2:])
    network = Convolution("tucker", tuple(core.shape), (len(in_factor), len(out_factor)), kernel,
                          [out_factor, in_factor, *map(torch.eye, kernel)], implementation, fixed_rank_modes="spatial")
    weight = network.layer.weight
    with torch.no_grad():
        weight.core.copy_(core)
    for factor in list(weight.factors)[2:]:
        factor.requires_grad_(False)
    return network


def cp(factors, implementation):
    """Components of weight 1, which is not trained."""
    own = [factors[name].flatten(1) for name in ("out_factor", "in_factor", "vertical", "horizontal")]
    own = [own[0], *(factor.T for factor in own[1:])]
    kernel = (len(own[2]), len(own[3]))
    network = Convolution("cp", own[0].shape[1], (len(own[1]), len(own[0])), kernel, own, implementation)
    network.layer.weight.weights.data.fill_(1)
    network.layer.weight.weights.requires_grad_(False)
    return network


def cores_of(factors):
    return [factors[name] for name in sorted(factors) if name.startswith("core")]


def tt(factors, implementation):
    """A train over in, height, width and out."""
    cores = cores_of(factors)
    sizes = [core.shape[1] for core in cores]
    rank = (*(core.shape[0] for core in cores), 1)
    return Convolution("tt", rank, (sizes[0], sizes[3]), (sizes[1], sizes[2]), cores, implementation)


def tt_linear(config):
    """A train of matrices, which TensorLy-Torch calls a block TT."""
    def build(factors, implementation):
        outs, ins = config["out_modes"], config["in_modes"]
        cores = [core.reshape(len(core), o, i, -1) for core, o, i in zip(cores_of(factors), outs, ins)]
        layer = tltorch.FactorizedLinear(tuple(ins), tuple(outs), bias=False, factorization="blocktt",
                                         rank=(*(len(core) for core in cores), 1), implementation=implementation)
        layer.in_features = int(layer.in_features)  # torch.compile refuses NumPy's integers under inference
        with torch.no_grad():
            for own, given in zip(layer.weight.factors, cores):
                own.copy_(given)
        return layer
    return build


def svd_linear(factors, _):
    layers = []
    for name in ("in_factor", "out_factor"):
        layers.append(nn.Linear(factors[name].shape[1], factors[name].shape[0], bias=False))
        layers[-1].weight.data.copy_(factors[name])
    return nn.Sequential(*layers)


def form_of(layer):
    """How to build the layer, and its implementations."""
    both = ["factorized", "reconstructed"]
    return {"tucker2_conv2d": (tucker, both), "cp_conv2d": (cp, [*both, "mobilenet"]), "tt_conv2d": (tt, both),
            "tt_linear": (tt_linear(layer["config"]), both), "svd_linear": (svd_linear, ["linear"])}[layer["kind"]]


def modes_of(layer):
    compiled = ["compiled"] + (["frozen"] if layer["phase"] == "forward" else [])
    compiled = compiled if hasattr(torch, "compile") else []
    return [mode for name in form_of(layer)[1] for mode in (name, *(f"{name}-{way}" for way in compiled))]


class Layer(torch_side.Modes):
    def __init__(self, layer, folder, layout):
        super().__init__()
        self.make, _ = form_of(layer)
        self.training = layer["phase"] == "training"
        self.layout = layout
        self.factors = load_tessera.read_safetensors(folder / "layer.safetensors")
        self.x = self.in_layout(self.factors.pop("x")).requires_grad_(self.training)
        self.grad_y = self.in_layout(self.factors.pop("grad_y"))

    def in_layout(self, images):
        return images.permute(0, 3, 1, 2).contiguous(memory_format=self.layout) if images.ndim == 4 else images

    def build(self, mode):
        implementation, _, way = mode.partition("-")
        network = self.make(self.factors, implementation)
        parameters = list(network.parameters())
        if way:
            torch._dynamo.reset()  # one layer after the other: none counts as a recompilation of another
            network = torch.compile(network, options={"freezing": True} if way == "frozen" else {})
        return network, parameters, torch.no_grad if way else torch.inference_mode

    def once(self, built):
        network, parameters, without_gradients = built
        if self.training:
            for variable in (self.x, *parameters):
                variable.grad = None
            start = time.perf_counter()
            network(self.x).backward(self.grad_y)
            ms, values = (time.perf_counter() - start) * 1e3, self.x.grad
        else:
            with without_gradients():
                start = time.perf_counter()
                values = network(self.x)
                ms = (time.perf_counter() - start) * 1e3
        return ms, values

    def values(self, mode):
        failed = self.warm_up(mode)
        if failed:
            return failed
        values = self.run(mode)[1].detach()
        rows = values.permute(0, 2, 3, 1) if values.ndim == 4 else values
        return {"values": sampled(rows)}


if __name__ == "__main__":
    FOLDER = pathlib.Path(sys.argv[1])
    LAYER = json.loads((FOLDER / "layer.json").read_text())
    torch_side.serve(lambda options, layout: Layer(LAYER, FOLDER, layout).commands(), modes=modes_of(LAYER),
                     tensorly=tensorly.__version__, tensorly_torch=tltorch.__version__)
