"""Rebuilds in PyTorch what `tessera export RUN --layout torch --output DIR` wrote. Needs PyTorch and nothing else of ours.

    python3 load_tessera.py DIR         prints the network and the shape of its output

    model = load_tessera.load("DIR")    # a torch.nn.Module in eval mode; images are [n, c, h, w], tokens int64
    model.masks                         # {"fc1.weight": bool tensor, True = kept} of pruned weights, whose others are zeros
"""
import json
import math
import pathlib
import struct
import sys

import torch
import torch.nn.functional as F
from torch import nn

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
          "I64": torch.int64, "I32": torch.int32, "U8": torch.uint8}


def read_safetensors(path):
    """{name: tensor} of a safetensors file: 8 bytes of header length, JSON header, the tensors' bytes."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=DTYPES[entry["dtype"]]) if end > begin else torch.empty(
            0, dtype=DTYPES[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"])
    return tensors


class BatchNorm(nn.modules.batchnorm._BatchNorm):
    """Over images and over rows of features alike."""

    def _check_input_dim(self, x):
        pass


class GlobalAvgPool(nn.Module):
    def forward(self, x):
        return x.mean(dim=(2, 3))


class Residual(nn.Module):
    def __init__(self, relu):
        super().__init__()
        self.relu = relu

    def forward(self, x):
        y = self.body(x) + (self.shortcut(x) if hasattr(self, "shortcut") else x)
        return F.relu(y) if self.relu else y


class ResidualBlock(nn.Module):
    """relu(bn(conv(... relu(bn(conv(x))) ...)) + shortcut(x)), children named as in torchvision."""

    def __init__(self, config, convolutions):
        super().__init__()
        self.config, self.convolutions = config, convolutions

    def shortcut(self, x):
        if self.config["shortcut"] == "projection":
            return self.downsample(x)
        if self.config["shortcut"] == "identity":
            return x
        stride, extra = self.config["stride"], self.config["out"] - self.config["in"]
        return F.pad(x[:, :, ::stride, ::stride], (0, 0, 0, 0, extra // 2, extra - extra // 2))

    def forward(self, x):
        y = x
        for i in range(1, self.convolutions + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = F.relu(y) if i < self.convolutions else y
        return F.relu(y + self.shortcut(x))


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def conv(c, out, inputs, kernel=1, bias=False, **options):
    return nn.Conv2d(inputs, out, pair(c["kernel"]) if kernel is None else kernel, bias=bias, **options)


def spatial(c):
    return {key: pair(c[key]) for key in ("stride", "padding", "dilation")}


def chain(c, *parts):
    """Convolutions one behind the other; with batch_norm a norm behind each but the last, and all padding in the first."""
    if not c.get("batch_norm", False):
        return nn.Sequential(*parts)
    for part in parts:
        part.padding = (0, 0)
    parts[0].padding = pair(c["padding"])
    normed = [layer for part in parts[:-1] for layer in (part, BatchNorm(part.out_channels))]
    return nn.Sequential(*normed, parts[-1])


def tucker2(c):
    """1x1 -> core -> 1x1; a mode of full rank may have no 1x1, and the last convolution has the bias."""
    out = c.get("out_factor", True)
    parts = [conv(c, c["rank_in"], c["in"])] if c.get("in_factor", True) else []
    parts.append(conv(c, c["rank_out"], c["rank_in"], None, c["bias"] and not out, **spatial(c)))
    if out:
        parts.append(conv(c, c["out"], c["rank_out"], bias=c["bias"]))
    return chain(c, *parts)


def svd_conv(c):
    """1x1 -> 1x1; the first has stride and padding, the second the bias."""
    first = conv(c, c["rank"], c["in"], stride=pair(c["stride"]), padding=pair(c["padding"]))
    return chain(c, first, conv(c, c["out"], c["rank"], bias=c["bias"]))


def along_rows(c):
    return {key: (pair(c[key])[0], default) for key, default in (("stride", 1), ("padding", 0), ("dilation", 1))}


def along_columns(c):
    return {key: (default, pair(c[key])[1]) for key, default in (("stride", 1), ("padding", 0), ("dilation", 1))}


def spatial_svd(c):
    """kh x 1 -> 1 x kw; the second has the bias."""
    rows, columns = pair(c["kernel"])
    first = nn.Conv2d(c["in"], c["rank"], (rows, 1), bias=False, **along_rows(c))
    return chain(c, first, nn.Conv2d(c["rank"], c["out"], (1, columns), bias=c["bias"], **along_columns(c)))


def cp(c):
    """1x1 -> kh x 1 -> 1 x kw -> 1x1, the two in the middle of each channel by itself; none of one row or column, whose stride and
    padding the next one has, at last the one before."""
    rank = c["rank"]
    rows, columns = pair(c["kernel"])
    directions = [(rows, along_rows(c), (rows, 1)), (columns, along_columns(c), (1, columns))]
    kept = [(options, kernel) for size, options, kernel in directions if size > 1]
    if len(kept) == 1:
        kept = [(spatial(c), kept[0][1])]
    middle = [nn.Conv2d(rank, rank, kernel, groups=rank, bias=False, **options) for options, kernel in kept]
    last = {} if kept else spatial(c)
    return chain(c, conv(c, rank, c["in"]), *middle, conv(c, c["out"], rank, bias=c["bias"], **last))


class TensorTrain(nn.Module):
    """Cores of a tensor train, whose product is the weight."""

    def __init__(self, modes, ranks, out, bias):
        super().__init__()
        sizes = zip([1, *ranks], modes, [*ranks, 1])
        self.cores = nn.ParameterList([nn.Parameter(torch.empty(size)) for size in sizes])
        self.bias = nn.Parameter(torch.empty(out)) if bias else None

    def composed(self):
        product = self.cores[0]
        for core in self.cores[1:]:
            product = torch.tensordot(product, core, dims=1)
        return product

    def matrix(self, pairs):
        """Of a train whose k-th mode is the k-th of the rows times the k-th of the columns."""
        paired = self.composed().reshape([size for both in pairs for size in both])
        axes = [*range(0, paired.dim(), 2), *range(1, paired.dim(), 2)]
        rows, columns = (math.prod(sizes) for sizes in zip(*pairs))
        return paired.permute(axes).reshape(rows, columns)


class TtConv2d(TensorTrain):
    """Modes of the output channels, kh kw, modes of the input channels."""

    def __init__(self, c):
        rows, columns = pair(c["kernel"])
        super().__init__([*c["out_modes"], rows * columns, *c["in_modes"]], c["ranks"], c["out"], c["bias"])
        self.shape, self.options = (c["out"], rows, columns, c["in"]), spatial(c)

    def forward(self, x):
        return F.conv2d(x, self.composed().reshape(self.shape).permute(0, 3, 1, 2), self.bias, **self.options)


class TtGaripovConv2d(TensorTrain):
    """kh kw, then the k-th mode of the output channels times the k-th of the input channels."""

    def __init__(self, c):
        rows, columns = pair(c["kernel"])
        pairs = list(zip(c["out_modes"], c["in_modes"]))
        super().__init__([rows * columns, *(out * inputs for out, inputs in pairs)], c["ranks"], c["out"], c["bias"])
        self.split = [rows * columns, *(size for both in pairs for size in both)]
        self.shape, self.options = (c["out"], rows, columns, c["in"]), spatial(c)

    def forward(self, x):
        split = self.composed().reshape(self.split)
        axes = [*range(1, split.dim(), 2), 0, *range(2, split.dim(), 2)]
        return F.conv2d(x, split.permute(axes).reshape(self.shape).permute(0, 3, 1, 2), self.bias, **self.options)


class TtLinear(TensorTrain):
    """The k-th mode is the k-th of the outputs times the k-th of the inputs."""

    def __init__(self, c):
        pairs = list(zip(c["out_modes"], c["in_modes"]))
        super().__init__([out * inputs for out, inputs in pairs], c["ranks"], c["out"], c["bias"])
        self.pairs = pairs

    def forward(self, x):
        return F.linear(x, self.matrix(self.pairs), self.bias)


class TtEmbedding(TensorTrain):
    """The k-th mode is the k-th of the vocabulary times the k-th of the width; rows behind the vocabulary are no tokens."""

    def __init__(self, c):
        pairs = list(zip(c["vocabulary_modes"], c["width_modes"]))
        super().__init__([rows * width for rows, width in pairs], c["ranks"], c["width"], False)
        self.pairs, self.vocabulary = pairs, c["vocabulary"]

    def forward(self, x):
        return F.embedding(x, self.matrix(self.pairs)[:self.vocabulary])


def svd_linear(c):
    """The second of the two has the bias."""
    return nn.Sequential(nn.Linear(c["in"], c["rank"], bias=False), nn.Linear(c["rank"], c["out"], bias=c["bias"]))


def pool(c):
    return {"kernel_size": pair(c["kernel"]), "stride": pair(c.get("stride", c["kernel"])), "padding": pair(c["padding"])}


KINDS = {
    "avg_pool2d": lambda c: nn.AvgPool2d(**pool(c), count_include_pad=False),
    "basic_block": lambda c: ResidualBlock(c, 2),
    "batch_norm": lambda c: BatchNorm(c["channels"], eps=c["eps"], momentum=c["momentum"]),
    "bottleneck": lambda c: ResidualBlock(c, 3),
    "conv2d": lambda c: conv(c, c["out"], c["in"], None, c["bias"], groups=c["groups"], **spatial(c)),
    "cp_conv2d": cp,
    "dropout": lambda c: nn.Dropout(c["p"]),
    "embedding": lambda c: nn.Embedding(c["vocabulary"], c["width"]),
    "flatten": lambda c: nn.Flatten(),
    "gelu": lambda c: nn.GELU(approximate="tanh" if c["form"] == "tanh" else "none"),
    "global_avg_pool": lambda c: GlobalAvgPool(),
    "identity": lambda c: nn.Identity(),
    "layer_norm": lambda c: nn.LayerNorm(c["channels"], eps=c["eps"]),
    "linear": lambda c: nn.Linear(c["in"], c["out"], bias=c["bias"]),
    "max_pool2d": lambda c: nn.MaxPool2d(**pool(c)),
    "relu": lambda c: nn.ReLU(),
    "residual": lambda c: Residual(c["relu"]),
    "sequential": lambda c: nn.Sequential(),
    "sigmoid": lambda c: nn.Sigmoid(),
    "silu": lambda c: nn.SiLU(),
    "spatial_svd_conv2d": spatial_svd,
    "svd_conv2d": svd_conv,
    "svd_linear": svd_linear,
    "tanh": lambda c: nn.Tanh(),
    "tt_conv2d": TtConv2d,
    "tt_embedding": TtEmbedding,
    "tt_garipov_conv2d": TtGaripovConv2d,
    "tt_linear": TtLinear,
    "tucker2_conv2d": tucker2,
}


def build(tree):
    module = KINDS[tree["kind"]](tree["config"])
    parts = [] if tree["config"].get("batch_norm") else tree["children"]  # the norms of a chain are in it
    for child in parts:
        module.add_module(child["name"], build(child))
    return module


def load(folder):
    folder = pathlib.Path(folder)
    description = json.loads((folder / "model.json").read_text())
    if description["format_version"] != 1:
        raise ValueError(f"{folder}/model.json: format_version is {description['format_version']}; this loader reads 1")
    model = build(description["network"])
    tensors = read_safetensors(folder / description["weights"])
    model.masks = {name.removesuffix("_mask"): tensors.pop(name).bool() for name in list(tensors) if name.endswith("_mask")}
    model.load_state_dict(tensors)
    return model.eval()


def reads_tokens(network):
    while isinstance(network, nn.Sequential) and len(network) > 0:
        network = network[0]
    return isinstance(network, (nn.Embedding, TtEmbedding))


if __name__ == "__main__":
    network = load(sys.argv[1])
    shape = json.loads((pathlib.Path(sys.argv[1]) / "model.json").read_text())["input"]
    print(network)
    print("output:", list(network(torch.zeros(1, *shape, dtype=torch.long if reads_tokens(network) else torch.float)).shape))
