"""Classifies images with a network that `tessera export RUN --layout torch --output DIR` wrote. Needs PyTorch and Pillow.

    python3 classify.py DIR IMAGE...    prints the likeliest classes of each image, with their probabilities

Images are brought to the network as in training, by what `preprocessing` in DIR/model.json says: the shorter side resized, the centre
cut out, channels normalised. A network of images of one size, such as CIFAR's, takes no others.
"""
import json
import pathlib
import sys

import torch
from PIL import Image, ImageOps

import load_tessera

SHOWN = 5


def resized(image, height, width, preprocessing, path):
    """The part of the image that the network sees, of its size."""
    if "resize" not in preprocessing:  # a data set whose images have the network's size
        if image.size != (width, height):
            sys.exit(f"{path}: is {image.height}x{image.width} pixels; the network takes {height}x{width}")
        return image
    shorter, side = min(image.size), preprocessing["crop"]
    image = image.resize(tuple(int(preprocessing["resize"] * length / shorter) for length in image.size), Image.BILINEAR)
    left, top = (round((length - side) / 2) for length in image.size)
    return image.crop((left, top, left + side, top + side))


def read_image(path, description):
    """A batch of one, [1, c, h, w]."""
    channels, height, width = description["input"]
    preprocessing = description["preprocessing"]
    image = ImageOps.exif_transpose(Image.open(path)).convert("L" if channels == 1 else "RGB")
    image = resized(image, height, width, preprocessing, path)
    values = torch.tensor(list(image.tobytes()), dtype=torch.float32).reshape(height, width, channels) / 255
    return ((values - torch.tensor(preprocessing["mean"])) / torch.tensor(preprocessing["std"])).permute(2, 0, 1)[None]


def main(folder, images):
    description = json.loads((pathlib.Path(folder) / "model.json").read_text())
    if "preprocessing" not in description:
        sys.exit(f"{folder}/model.json: has no preprocessing: the network was not exported from a run that trains on images")
    network, classes = load_tessera.load(folder), description["classes"]
    for path in images:
        with torch.no_grad():
            probabilities = network(read_image(path, description)).softmax(1)[0]
        best = probabilities.argsort(descending=True)[:SHOWN].tolist()
        print(f"{path}: " + ", ".join(f"{classes[i]} {probabilities[i]:.4f}" for i in best))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2:])
