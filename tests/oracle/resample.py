#!/usr/bin/env python3
"""Prints the expected bytes of tests/train/data/resample_test.cpp, from torchvision on PIL images.

Usage: tests/oracle/resample.py    (Debian: python3-pil python3-torchvision; made with PIL 9.4, torchvision 0.14)
"""
import numpy
from PIL import Image
from torchvision import transforms
from torchvision.transforms import functional


def pattern(height, width):
    """The image that the test makes: every channel another polynomial of the place, modulo 256."""
    y, x = numpy.mgrid[0:height, 0:width]
    channels = [7 * y + 3 * x, y * x + 11 * y, 5 * x * x + 13 * y]
    return Image.fromarray(numpy.stack(channels, axis=2).astype(numpy.int64).__mod__(256).astype(numpy.uint8))


def show(name, image):
    values = numpy.asarray(image).reshape(-1)
    print(f"{name}: sum {int(values.astype(numpy.int64).sum())}, first {values[:12].tolist()}, last {values[-6:].tolist()}")


def evaluation(resize, crop):
    return transforms.Compose([
        transforms.Resize(resize, interpolation=transforms.InterpolationMode.BILINEAR),
        transforms.CenterCrop(crop),
    ])


CENTRES = ((37, 53, 16, 13), (53, 37, 16, 13), (9, 7, 16, 11), (16, 16, 16, 16), (5, 64, 8, 7), (1, 1, 4, 3))
for height, width, resize, crop in CENTRES:
    show(f"centre {height}x{width} -> {resize} -> {crop}", evaluation(resize, crop)(pattern(height, width)))
for box in ((3, 5, 20, 30), (0, 0, 37, 53), (36, 52, 1, 1), (10, 0, 6, 9)):
    show(f"resized {box} of 37x53 -> 8", functional.resized_crop(pattern(37, 53), *box, [8, 8], antialias=True))
