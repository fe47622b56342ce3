"""PyTorch's side of decode_bench: one token behind another, with the keys and values of all before it in a static cache.

Usage: decode_bench_torch.py FOLDER [--threads N] [--precision f32|bf16]
FOLDER has a network (torch_transformers.py) and tokens.safetensors (prompt, then the tokens that are read one by one, both i64
[1, n]). Its commands are those of torch_side.Modes: the values are the scores of what follows the prompt and the first token
behind it, and K times are those of so many tokens, from the first one on. The modes: eager, whose attention reads what is
in the cache; compiled = torch.compile with constant weights, whose attention reads all of the cache under a mask, because shapes are
part of a compiled graph. In bf16 weights and cache are bf16.
"""
import time

import torch_side  # answers {"missing": ...} and ends without torch

import torch
import torch_transformers
from torch_side import load_tessera

MODES = ["eager"] + (["compiled"] if hasattr(torch, "compile") else [])


class Decoder(torch_side.Modes):
    @torch.inference_mode()
    def __init__(self, folder, precision):
        super().__init__()
        self.network = torch_transformers.load(folder).eval()
        if precision == "bf16":
            self.network.to(torch.bfloat16)
        stored = load_tessera.read_safetensors(folder / "tokens.safetensors")
        self.prompt, self.tokens = stored["prompt"], stored["tokens"]
        self.start = self.prompt.shape[1]
        self.caches = self.network.caches(self.start + self.tokens.shape[1])
        self.network.behind(self.prompt, self.caches, torch.arange(self.start), self.start)
        self.read = 0

    def build(self, mode):
        if mode == "eager":
            return lambda token, position, end: self.network.behind(token, self.caches, position, end)
        compiled = torch.compile(lambda token, position: self.network.behind(token, self.caches, position),
                                 options={"freezing": True})
        return lambda token, position, end: compiled(token, position)

    @torch.inference_mode()
    def once(self, network):
        start = time.perf_counter()
        place = self.start + self.read
        y = network(self.tokens[:, self.read : self.read + 1], torch.tensor([place]), place + 1)
        self.read = (self.read + 1) % self.tokens.shape[1]
        return (time.perf_counter() - start) * 1e3, y.float()

    def values(self, mode):
        failed = self.warm_up(mode)
        self.read = 0
        return failed or {"values": self.run(mode)[1].tolist()}

    def time(self, mode, count):
        failed = {} if mode in self.built else self.warm_up(mode)
        self.read = 0
        return failed or super().time(mode, count)


def commands(options, _):
    return Decoder(options.folder, options.precision).commands()


if __name__ == "__main__":
    torch_side.serve(commands, modes=MODES)
