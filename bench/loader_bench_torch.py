"""PyTorch's side of loader_bench: torchvision's ImageFolder and transforms on Pillow's images, in a DataLoader.

Usage: loader_bench_torch.py FOLDER [--threads N]
Its images are FOLDER/train/<class>/*.jpg. Its commands are
  write COUNT            {"bytes": n}: COUNT images of 500x375 into FOLDER/train, the same ones always; n bytes in all
  values COUNT FILE      {}: the first COUNT as they are evaluated, [COUNT, 3, 224, 224] of float32, into the file
  epoch FRAME WORKERS BATCH
                         {"ms": x}: from a new iterator to the last batch; FRAME is training or evaluation
"""
import pathlib
import sys
import time
import warnings

import torch_side  # answers {"missing": ...} and ends without torch

import torch

try:
    import numpy
    import PIL
    import torchvision
    from PIL import Image, features
    from torchvision import transforms
except ImportError as failure:
    torch_side.answer(missing=str(failure))
    sys.exit(0)

WIDTH, HEIGHT, QUALITY, CLASSES = 500, 375, 90, 8
# Smooth noise: how many cells there are in a row, and how far each is from grey.
SCALES = ((2, 60), (6, 40), (18, 25), (54, 18), (160, 18))
GRAIN = 10

# Which number of workers is best on a core is what is measured here.
warnings.filterwarnings("ignore", "This DataLoader will create")

# As ours: LoaderWorkload.
NORMALIZE = [transforms.ToTensor(), transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))]
FRAMES = {
    "training": [transforms.RandomResizedCrop(224, scale=(0.25, 1.0)), transforms.RandomHorizontalFlip()],
    "evaluation": [transforms.Resize(256), transforms.CenterCrop(224)],
}


def photo(random):
    """An image with a photograph's content at every scale: broad shades, edges, texture and a sensor's grain."""
    light = numpy.full((HEIGHT, WIDTH, 3), 128.0)
    for cells, amplitude in SCALES:
        noise = random.randint(0, 256, (cells * HEIGHT // WIDTH + 1, cells + 1, 3)).astype(numpy.uint8)
        smooth = numpy.asarray(Image.fromarray(noise).resize((WIDTH, HEIGHT), Image.BICUBIC), dtype=numpy.float64)
        light += (smooth - 128) * (amplitude / 64)
    light += random.randint(-GRAIN, GRAIN + 1, (HEIGHT, WIDTH, 1))
    return Image.fromarray(numpy.clip(light, 0, 255).astype(numpy.uint8))


class Pipeline:
    def __init__(self, folder):
        self.folder = folder
        self.loaders = {}

    def images(self, frame):
        return torchvision.datasets.ImageFolder(self.folder / "train", transforms.Compose(FRAMES[frame] + NORMALIZE))

    def write(self, count):
        random = numpy.random.RandomState(1)
        written = 0
        for index in range(int(count)):
            path = self.folder / "train" / f"class{index % CLASSES}" / f"{index:06}.jpg"
            path.parent.mkdir(parents=True, exist_ok=True)
            photo(random).save(path, quality=QUALITY)
            written += path.stat().st_size
        return {"bytes": written}

    def values(self, count, file):
        images = self.images("evaluation")
        torch.stack([images[index][0] for index in range(int(count))]).numpy().tofile(pathlib.Path(file))
        return {}

    def loader(self, frame, workers, batch):
        return torch.utils.data.DataLoader(self.images(frame), batch_size=batch, shuffle=frame == "training", drop_last=True,
                                           num_workers=workers, persistent_workers=workers > 0)

    def epoch(self, frame, workers, batch):
        way = frame, int(workers), int(batch)
        if way not in self.loaders:
            self.loaders[way] = self.loader(*way)
            for _ in self.loaders[way]:  # its workers are processes, started once
                pass
        start = time.perf_counter()
        for _ in self.loaders[way]:
            pass
        return {"ms": (time.perf_counter() - start) * 1e3}

    def commands(self):
        return {"write": self.write, "values": self.values, "epoch": self.epoch}


if __name__ == "__main__":
    torch_side.serve(lambda options, layout: Pipeline(options.folder).commands(), torchvision=torchvision.__version__,
                     pillow=PIL.__version__, libjpeg_turbo=features.version_feature("libjpeg_turbo"))
