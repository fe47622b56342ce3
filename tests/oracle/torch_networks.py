"""PyTorch's side of the tests of imported and exported weights. Files are safetensors, written and read without a package.

torch_networks.py resnet18 DIR       writes DIR/w.safetensors, torchvision's ResNet-18 with random weights and statistics (7
                                     classes, num_batches_tracked included), DIR/x.safetensors (x, NHWC) and DIR/y.safetensors
torch_networks.py exported DIR       loads the export in DIR through examples/python/load_tessera.py, runs DIR/x.safetensors and
                                     writes DIR/y.safetensors
torch_networks.py masked DIR         the same for an export that has masks
torch_networks.py torchvision DIR    the same through torchvision's own ResNet-18 class
"""
import json
import pathlib
import struct
import sys

import torch
import torchvision

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples" / "python"))
import load_tessera  # noqa: E402

SPELLING = {torch.float32: "F32", torch.int64: "I64"}


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        values = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": SPELLING[tensor.dtype], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def random_resnet18(classes):
    torch.manual_seed(1)
    model = torchvision.models.resnet18(num_classes=classes)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):  # fresh statistics and scales are trivial: 0 and 1
            module.running_mean.uniform_(-0.2, 0.2)
            module.running_var.uniform_(0.5, 2)
            module.weight.data.uniform_(0.5, 1.5)
            module.bias.data.uniform_(-0.2, 0.2)
            module.num_batches_tracked.fill_(17)
    return model.eval()


def run(model, folder):
    x = load_tessera.read_safetensors(folder / "x.safetensors")["x"]
    if x.dim() == 4:
        x = x.permute(0, 3, 1, 2).contiguous()
    with torch.no_grad():
        write_safetensors(folder / "y.safetensors", {"y": model(x)})


def main():
    kind, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    if kind == "resnet18":
        model = random_resnet18(7)
        write_safetensors(folder / "w.safetensors", model.state_dict())
        write_safetensors(folder / "x.safetensors", {"x": torch.randn(2, 64, 64, 3)})
    elif kind in ("exported", "masked"):
        model = load_tessera.load(folder)
        assert bool(model.masks) == (kind == "masked"), f"{len(model.masks)} masks"
        weights = model.state_dict()
        for name, mask in model.masks.items():
            assert not weights[name][~mask].any(), f"{name}: what the mask leaves out is not zero"
            if weights[name].dim() > 1:  # biases of fresh norms are zeros
                assert weights[name][mask].all(), f"{name}: the mask keeps zeros"
    elif kind == "torchvision":
        state = load_tessera.read_safetensors(folder / "model.safetensors")
        model = torchvision.models.resnet18(num_classes=state["fc.bias"].numel())
        model.load_state_dict(state)
        model.eval()
    else:
        sys.exit(__doc__)
    run(model, folder)


if __name__ == "__main__":
    main()
