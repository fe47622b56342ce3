"""Looks at models in ONNX that tessera wrote.

Usage: onnx_models.py check FOLDER    one line for each model: its name, versions, and what onnx.checker says
       onnx_models.py run FOLDER      one line for each NAME.onnx and batch in NAME.safetensors: by how much ONNX Runtime's answer
                                      differs from the file's, in parts of the largest answer
Of a batch the file has tensors x.<batch> and y.<batch>, and mask.<batch> where the model is to be given one.
"""
import pathlib
import sys

import numpy

import read_safetensors


def check(path):
    import onnx

    model = onnx.load(str(path))
    onnx.checker.check_model(model, full_check=True)  # with the shapes that follow from the input's
    versions = [f"{entry.domain}:{entry.version}" for entry in model.opset_import]
    keys = sorted(entry.key for entry in model.metadata_props)
    print(path.stem, f"ir {model.ir_version}", "opset", *versions, model.producer_name, *keys)


def run(path):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3  # errors: it warns of inputs that have a value of their own
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    _, tensors = read_safetensors.read(path.with_suffix(".safetensors"))
    for name in sorted(tensors):
        if not name.startswith("x."):
            continue
        batch = name[2:]
        inputs = {session.get_inputs()[0].name: tensors[name][1]}
        if f"mask.{batch}" in tensors:
            inputs["key_mask"] = tensors[f"mask.{batch}"][1].astype(bool)
        (scores,) = session.run(["scores"], inputs)
        expected = tensors[f"y.{batch}"][1]
        if scores.shape != expected.shape:
            print(path.stem, batch, "shape", list(scores.shape), "is not", list(expected.shape))
            continue
        largest = numpy.abs(expected).max()
        print(path.stem, batch, float(numpy.abs(scores - expected).max() / largest), float(largest))


def main():
    action = {"check": check, "run": run}[sys.argv[1]]
    for path in sorted(pathlib.Path(sys.argv[2]).glob("*.onnx")):
        action(path)


if __name__ == "__main__":
    main()
