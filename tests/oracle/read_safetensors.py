"""Prints name, dtype, shape and sum of every tensor of a safetensors file, one a line, sorted by name.

Written from the format's description alone (8-byte little-endian header length, JSON header, tensor bytes), so that it
can disagree with tessera's reader and writer. Usage: read_safetensors.py FILE
"""
import json
import struct
import sys

import numpy

DTYPES = {"U8": "<u1", "I32": "<i4", "I64": "<i8", "F16": "<f2", "F32": "<f4", "F64": "<f8", "BF16": "<u2"}


def read(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length).decode("utf-8"))
        data = file.read()
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        values = numpy.frombuffer(data[begin:end], dtype=DTYPES[entry["dtype"]])
        if entry["dtype"] == "BF16":  # numpy has no bfloat16: it is the upper half of a float32
            values = (values.astype("<u4") << 16).view("<f4")
        tensors[name] = (entry["dtype"], values.reshape(entry["shape"]))
    return metadata, tensors


def main():
    metadata, tensors = read(sys.argv[1])
    for key in sorted(metadata):
        print(f"# {key} = {metadata[key]}")
    for name in sorted(tensors):
        dtype, values = tensors[name]
        print(f"{name} {dtype} {list(values.shape)} {float(values.sum(dtype='float64'))!r}")


if __name__ == "__main__":
    main()
