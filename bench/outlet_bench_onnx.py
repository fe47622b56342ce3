"""ONNX Runtime's side of outlet_bench: one session answers one batch. Reads commands on stdin, answers each with one JSON line.

Usage: outlet_bench_onnx.py MODEL BATCH --threads N --shape D... [--spinning]
BATCH is the model's first input, float32, element by element. The first line, unasked, describes the environment, or is
{"missing": reason} without ONNX Runtime. The commands are
  values        {"values": [...]}: what the model answers, row by row
  time COUNT    {"ms": [...]} of COUNT answers
"""
import argparse
import sys
import time

from rival_answers import answer

try:
    import numpy
    import onnxruntime
except ImportError as error:
    answer(missing=str(error))
    sys.exit(0)


class Session:
    def __init__(self, options):
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        settings.add_session_config_entry("session.intra_op.allow_spinning", "1" if options.spinning else "0")
        settings.log_severity_level = 3  # errors: it warns of inputs that have a value of their own
        self.session = onnxruntime.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
        batch = numpy.fromfile(options.batch, dtype=numpy.float32).reshape(options.shape)
        self.inputs = {self.session.get_inputs()[0].name: batch}

    def run(self):
        return self.session.run(None, self.inputs)[0]

    def values(self):
        return {"values": self.run().flatten().tolist()}

    def once(self):
        start = time.perf_counter()
        self.run()
        return (time.perf_counter() - start) * 1e3

    def time(self, count):
        return {"ms": [self.once() for _ in range(int(count))]}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("batch")
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--shape", type=int, nargs="+", required=True)
    parser.add_argument("--spinning", action="store_true")
    session = Session(parser.parse_args())
    answer(onnxruntime=onnxruntime.__version__, numpy=numpy.__version__)
    for line in sys.stdin:
        command, *words = line.split()
        answer(**{"values": session.values, "time": session.time}[command](*words))


if __name__ == "__main__":
    main()
