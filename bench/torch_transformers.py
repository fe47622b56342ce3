"""Transformers in plain torch.nn, with the parameters' names of tessera's: what PyTorch's sides of train_bench and decode_bench
compute. `load(folder)` builds the network of FOLDER/network.json with the values of FOLDER/weights.safetensors."""
import json
import pathlib
import sys

import torch
import torch.nn.functional as F
import torch_side
from torch import nn
from torch_side import load_tessera


class Attention(nn.Module):
    def __init__(self, width, heads, causal):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def split(self, x):
        """Queries, keys and values, each [n, heads, t, width of a head]."""
        n, t, width = x.shape
        return (part.view(n, t, self.heads, width // self.heads).transpose(1, 2) for part in self.qkv(x).split(width, dim=2))

    def joined(self, y):
        n, heads, t, width = y.shape
        return self.out(y.transpose(1, 2).reshape(n, t, heads * width))

    def forward(self, x):
        q, k, v = self.split(x)
        return self.joined(F.scaled_dot_product_attention(q, k, v, is_causal=self.causal))

    def behind(self, x, cache, positions, end):
        """Of positions that follow those in cache = (keys, values), each [n, heads, capacity, width of a head]. `end` is the number
        of positions then, or None where it is not to become part of a compiled graph: what lies behind is then masked."""
        q, k, v = self.split(x)
        for held, new in zip(cache, (k, v)):
            held.index_copy_(2, positions, new)
        if end is not None:
            keys, values = (held[:, :, :end] for held in cache)
            return self.joined(F.scaled_dot_product_attention(q, keys, values, is_causal=len(positions) == end > 1))
        mask = torch.arange(cache[0].shape[2]) <= positions[:, None]
        return self.joined(F.scaled_dot_product_attention(q, *cache, attn_mask=mask))


class Mlp(nn.Module):
    def __init__(self, width, hidden, gelu):
        super().__init__()
        self.fc1, self.fc2, self.gelu = nn.Linear(width, hidden), nn.Linear(hidden, width), gelu

    def forward(self, x):
        return self.fc2(F.gelu(self.fc1(x), approximate=self.gelu))


class Block(nn.Module):
    def __init__(self, c, causal, gelu):
        super().__init__()
        self.norm1, self.norm2 = (nn.LayerNorm(c["width"], eps=c["eps"]) for _ in range(2))
        self.attn = Attention(c["width"], c["heads"], causal)
        self.mlp = Mlp(c["width"], c.get("hidden") or 4 * c["width"], gelu)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))

    def behind(self, x, *where):
        x = x + self.attn.behind(self.norm1(x), *where)
        return x + self.mlp(self.norm2(x))


class Gpt(nn.Module):
    """GPT-2's network: learned positions, a head that reads the table of the tokens."""

    def __init__(self, c):
        super().__init__()
        self.tokens = nn.Embedding(c["vocabulary"], c["width"])
        self.positions = nn.Embedding(c["length"], c["width"])
        self.blocks = nn.ModuleList(Block(c, True, "tanh") for _ in range(c["layers"]))
        self.norm = nn.LayerNorm(c["width"], eps=c["eps"])

    def scores(self, x):
        return F.linear(self.norm(x), self.tokens.weight)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.scores(x)

    def caches(self, capacity):
        attention = self.blocks[0].attn
        width = self.norm.weight.shape[0] // attention.heads
        shape = 1, attention.heads, capacity, width
        return [tuple(torch.zeros(shape, dtype=self.norm.weight.dtype) for _ in range(2)) for _ in self.blocks]

    def behind(self, tokens, caches, positions, end=None):
        """Scores [vocabulary] of what follows the last of `tokens` [1, t], which stand at `positions` [t]."""
        x = self.tokens(tokens) + self.positions(positions)
        for block, cache in zip(self.blocks, caches):
            x = block.behind(x, cache, positions, end)
        return self.scores(x[:, -1])[0]


class Named(nn.Module):
    """A child by a name: tessera's patches are a module around a convolution, its class token is one with a weight."""

    def __init__(self, **children):
        super().__init__()
        for name, child in children.items():
            setattr(self, name, child)


class Vit(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.patches = Named(conv=nn.Conv2d(c["channels"], c["width"], c["patch"], c["patch"]))
        self.class_token = Named(weight=nn.Parameter(torch.zeros(1, c["width"])))
        self.positions = Named(weight=nn.Parameter(torch.zeros(c["positions"], c["width"])))
        self.blocks = nn.ModuleList(Block(c, False, "none") for _ in range(c["layers"]))
        self.norm = nn.LayerNorm(c["width"], eps=c["eps"])
        self.head = nn.Linear(c["width"], c["classes"])

    def forward(self, images):
        x = self.patches.conv(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.class_token.weight.expand(len(x), 1, -1), x), dim=1) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


NETWORKS = {"gpt": Gpt, "vit": Vit}


def load(folder):
    if not hasattr(F, "scaled_dot_product_attention"):
        torch_side.answer(missing=f"torch {torch.__version__} has no scaled_dot_product_attention; transformers need 2.0 or newer")
        sys.exit(0)
    description = json.loads((pathlib.Path(folder) / "network.json").read_text())
    network = NETWORKS[description["name"]](description)
    stored = load_tessera.read_safetensors(pathlib.Path(folder) / "weights.safetensors")
    if "patches.conv.weight" in stored:  # [out, kh, kw, in] in tessera
        stored["patches.conv.weight"] = stored["patches.conv.weight"].permute(0, 3, 1, 2)
    network.load_state_dict(stored)
    return network
