#!/usr/bin/env python3
"""What TensorBoard reads of a folder of event files, as JSON: of each run its scalars, a list of [step, value] by tag, and its texts.

Usage: read_events.py FOLDER   (needs PyPI's tensorboard)
"""
import json
import sys

from tensorboard.backend.event_processing import plugin_event_multiplexer
from tensorboard.util import tensor_util

EVERYTHING = {"tensors": 0}


def scalar(event):
    return [event.step, repr(float(tensor_util.make_ndarray(event.tensor_proto)))]


def text(event):
    return tensor_util.make_ndarray(event.tensor_proto).item().decode()


def main():
    runs = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance=EVERYTHING).AddRunsFromDirectory(sys.argv[1])
    runs.Reload()
    out = {}
    for run in sorted(runs.Runs()):
        out[run] = {}
        for plugin, read in (("scalars", scalar), ("text", text)):
            tags = sorted(runs.PluginRunToTagToContent(plugin)[run])
            out[run][plugin] = {tag: [read(event) for event in runs.Tensors(run, tag)] for tag in tags}
    json.dump(out, sys.stdout)


if __name__ == "__main__":
    main()
