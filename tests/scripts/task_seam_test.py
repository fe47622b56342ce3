#!/usr/bin/env python3
"""Nothing in train/ and cli/ knows what a task is about: neither its metrics, nor what its samples and answers are."""
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Below the seam: the data sets, and the verb that counts what is in them; the experiment files that `tessera init` writes.
BELOW = ("train/data/", "cli/data.cpp", "cli/init.cpp")
# `classes: 10` and `classes=10` are a key of networks in examples.
WORDS = re.compile(r"accurac|\btop-?[15]|\bclasses\b(?![=:] ?\d)|\bimg/s|images_per_second|\bconfus", re.IGNORECASE)


def tasks():
    """Stems of the files of tasks: what is in train/tasks beside the interface."""
    return {file.stem for file in (ROOT / "train" / "tasks").glob("*.cpp")} - {"builtin", "loss_config", "metric"}


def sources():
    for folder in ("train", "cli"):
        for file in sorted((ROOT / folder).rglob("*")):
            path = file.relative_to(ROOT).as_posix()
            own = path.startswith("train/tasks/") and file.stem in tasks()
            if file.suffix in {".h", ".cpp"} and not path.startswith(BELOW) and not own:
                yield path, file.read_text(encoding="utf-8").splitlines()


def found(pattern, exempt=()):
    return [f"{path}:{number}: {line.strip()}" for path, lines in sources() if path not in exempt
            for number, line in enumerate(lines, start=1) if re.search(pattern, line)]


class TaskSeam(unittest.TestCase):
    def test_tasks_are_found(self):
        self.assertLessEqual({"classification", "class_counts"}, tasks())

    def test_no_task_is_named_above_it(self):
        self.assertEqual(found(WORDS), [])

    def test_no_task_is_included_but_by_the_list(self):
        headers = "|".join(f"train/tasks/{stem}\\.h" for stem in sorted(tasks()))
        self.assertEqual(found(headers, exempt={"train/tasks/builtin.cpp"}), [])

    def test_no_images_above_the_data_sets(self):
        self.assertEqual(found(r"train/data/(image_dataset|labelled_images|transforms)\.h"), [])

    def test_words(self):
        for line in ("val accuracy", "accuracies", "Top-1", "top1_mean", "the classes", "97 img/s", "a confusion matrix"):
            self.assertTrue(WORDS.search(line), line)
        for line in ("class Task", "resnet18 classes=1000", "{name: resnet20, classes: 10}", "samples_per_second", "stop1"):
            self.assertFalse(WORDS.search(line), line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
