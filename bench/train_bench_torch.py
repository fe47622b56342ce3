"""PyTorch's side of train_bench: the same training step from the same weights and batches.

Usage: train_bench_torch.py FOLDER [--threads N] [--channels-last] [--compiled] [--precision f32|tf32|bf16]
                            [--device cpu|cuda] [--graphs]
FOLDER is an export of tessera's, or a transformer's network.json and weights.safetensors (torch_transformers.py), with
batches.safetensors (x0, y0, x1, ..., images NHWC) and config.json (of the optimiser) in it. Its command (torch_side.py) is
  step K    runs K training steps: {"ms": [...], "loss": [...]}
On a GPU steps are queued one behind the other, and each counts for its share of the time until all are done; with --graphs each
batch's step is recorded once and replayed.
"""
import json
import time

import torch_side  # answers {"missing": ...} and ends without torch

import torch
import torch.nn.functional as F
import torch_transformers
from torch import nn
from torch_side import load_tessera


class InPlaceBlock(load_tessera.ResidualBlock):
    """The same block, with rectifiers and the addition in place: what a user who counts milliseconds writes."""

    def forward(self, x):
        y = x
        for i in range(1, self.convolutions + 1):
            y = getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(y))
            y = F.relu(y, inplace=True) if i < self.convolutions else y
        y += self.shortcut(x)
        return F.relu(y, inplace=True)


def trainable(network):
    """An exported network in PyTorch's own classes and at its fastest."""
    for module in network.modules():
        if isinstance(module, load_tessera.BatchNorm):
            module.__class__ = nn.BatchNorm2d  # the class that compilers know
        if isinstance(module, load_tessera.ResidualBlock):
            module.__class__ = InPlaceBlock
        if isinstance(module, nn.ReLU):
            module.inplace = True
    return network.train()


def network_of(folder):
    if (folder / "network.json").exists():
        return torch_transformers.load(folder).train()
    return trainable(load_tessera.load(folder))


def optimizer_of(parameters, config, fused):
    """In one pass over all parameters where this torch has it: on the CPU since 2.4 (AdamW)."""
    settings = {key: value for key, value in config.items() if key != "name"}
    if config["name"] == "sgd":
        return torch.optim.SGD(parameters, **({"fused": True} if fused else {"foreach": True}), **settings)
    parameters = list(parameters)
    try:
        return torch.optim.AdamW(parameters, fused=True, **settings)
    except (TypeError, RuntimeError):  # by the version
        return torch.optim.AdamW(parameters, foreach=True, **settings)


def batches_of(folder, layout):
    stored = load_tessera.read_safetensors(folder / "batches.safetensors")

    def as_read(x):
        return x.permute(0, 3, 1, 2).contiguous(memory_format=layout) if x.dim() == 4 else x

    return [(as_read(stored[f"x{i}"]), stored[f"y{i}"]) for i in range(len(stored) // 2)]


def loss_of_scores(scores, y):
    """The mean over samples and, where they have them, positions."""
    return F.cross_entropy(scores.float().flatten(0, -2), y.flatten())


class Trainer:
    def __init__(self, folder, layout, compiled, precision):
        self.bf16 = precision == "bf16"
        self.model = network_of(folder).to(memory_format=layout)
        self.loss = torch.compile(self.loss_of) if compiled else self.loss_of
        self.config = json.loads((folder / "config.json").read_text())
        self.optimizer = optimizer_of(self.model.parameters(), self.config, fused=False)
        self.batches = batches_of(folder, layout)
        self.done = 0

    def loss_of(self, x, y):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bf16):
            scores = self.model(x)
        return loss_of_scores(scores, y)

    def step(self):
        x, y = self.batches[self.done % len(self.batches)]
        start = time.perf_counter()
        loss = self.loss(x, y)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        value = loss.item()
        self.done += 1
        return (time.perf_counter() - start) * 1e3, value

    def steps(self, count):
        done = [self.step() for _ in range(int(count))]
        return {"ms": [ms for ms, _ in done], "loss": [loss for _, loss in done]}


class CudaTrainer(Trainer):
    def __init__(self, folder, layout, compiled, precision, graphs):
        torch.backends.cudnn.benchmark = True  # the fastest algorithm of each convolution
        torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = precision != "f32"
        super().__init__(folder, layout, compiled, precision)
        self.model.to("cuda")
        self.optimizer = optimizer_of(self.model.parameters(), self.config, fused=True)
        self.batches = [(x.to("cuda"), y.to("cuda")) for x, y in self.batches]
        self.graphs = self.recorded() if graphs else []

    def loss_of(self, x, y):
        with torch.autocast("cuda", torch.bfloat16, enabled=self.bf16):
            scores = self.model(x)
        return loss_of_scores(scores, y)

    def queue_step(self, x, y):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(x, y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def recorded(self):
        """[(graph, its loss)] of each batch. The steps before, which plans and compilers want, are undone."""
        saved = {name: value.clone() for name, value in self.model.state_dict().items()}
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.queue_step(*self.batches[0])
        torch.cuda.current_stream().wait_stream(side)
        self.optimizer.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()  # graphs have memory of their own: what these steps took is free for the other side
        graphs, pool = [], None
        for x, y in self.batches:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=pool):
                loss = self.queue_step(x, y)
            pool = graph.pool()
            graphs.append((graph, loss))
        with torch.no_grad():
            for name, value in self.model.state_dict().items():
                value.copy_(saved[name])
            for state in self.optimizer.state.values():
                state["momentum_buffer"].zero_()  # the first step then takes the gradient, as it does without one
        return graphs

    def step(self):
        index = self.done % len(self.batches)
        self.done += 1
        if not self.graphs:
            return self.queue_step(*self.batches[index])
        graph, loss = self.graphs[index]
        graph.replay()
        return loss.clone()

    def steps(self, count):
        torch.cuda.synchronize()
        start = time.perf_counter()
        losses = [self.step() for _ in range(int(count))]
        torch.cuda.synchronize()
        each = (time.perf_counter() - start) * 1e3 / len(losses)
        return {"ms": [each] * len(losses), "loss": [loss.item() for loss in losses]}

    @staticmethod
    def memory():
        return {"start_kib": 0, "peak_kib": torch.cuda.max_memory_reserved() // 1024}


def commands(options, layout):
    if options.device == "cuda":
        trainer = CudaTrainer(options.folder, layout, options.compiled, options.precision, options.graphs)
        return {"step": trainer.steps, "memory": trainer.memory}
    return {"step": Trainer(options.folder, layout, options.compiled, options.precision).steps}


if __name__ == "__main__":
    torch_side.serve(commands, trains=True)
