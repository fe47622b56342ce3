"""A network trained in PyTorch, for docs/tutorial.md: draws images of four shapes into shapes/, trains torchvision's ResNet-18
on them, prints its accuracy on the test images and writes its weights to resnet18.safetensors.

    python3 train_shapes.py      needs PyTorch, torchvision and the package safetensors; downloads nothing
"""
import pathlib
import random

import torch
import torchvision
from PIL import Image, ImageDraw
from safetensors.torch import save_file
from torch.utils.data import DataLoader
from torchvision import transforms

SIDE, EPOCHS = 64, 8
CORNERS = {"circle": 0, "hexagon": 6, "square": 4, "triangle": 3}
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def draw(corners):
    """A bright shape at a random place, turned a little, on a dark ground."""
    image = Image.new("RGB", (SIDE, SIDE), tuple(random.randrange(100) for _ in range(3)))
    x, y, radius = random.randrange(20, 44), random.randrange(20, 44), random.randrange(9, 19)
    colour = tuple(random.randrange(130, 256) for _ in range(3))
    if corners == 0:
        ImageDraw.Draw(image).ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
    else:
        ImageDraw.Draw(image).regular_polygon((x, y, radius), corners, rotation=random.randrange(-15, 16), fill=colour)
    return image


def draw_all(root, images_of_split):
    for split, count in images_of_split.items():
        for shape, corners in CORNERS.items():
            folder = root / split / shape
            folder.mkdir(parents=True, exist_ok=True)
            for i in range(count):
                draw(corners).save(folder / f"{i:03}.png")


def accuracy(model, data):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in DataLoader(data, 32))
    return right / len(data)


def main():
    random.seed(1)
    torch.manual_seed(1)
    draw_all(pathlib.Path("shapes"), {"train": 200, "test": 100})
    prepare = transforms.Compose([transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    train, test = (torchvision.datasets.ImageFolder(f"shapes/{split}", prepare) for split in ("train", "test"))

    model = torchvision.models.resnet18(num_classes=len(train.classes))
    batches = DataLoader(train, 32, shuffle=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.02, epochs=EPOCHS, steps_per_epoch=len(batches))
    for epoch in range(EPOCHS):
        model.train()
        for x, y in batches:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            schedule.step()
        print(f"epoch {epoch + 1}  loss of the last batch {loss.item():.4f}", flush=True)
    print(f"test accuracy {100 * accuracy(model, test):.2f} %")
    save_file(model.state_dict(), "resnet18.safetensors")


if __name__ == "__main__":
    main()
