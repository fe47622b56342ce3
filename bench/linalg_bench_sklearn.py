"""scikit-learn's side of linalg_bench: randomized_svd of one matrix. Reads commands on stdin, answers each with one JSON line.

The first line, unasked, describes the environment, or is {"missing": reason} without scikit-learn. The commands are
  load N FILE                 {}: the matrix [N, N] of float32 in the file, row by row
  error RANK OVER ITER        {"error": x}: |A - U S V| / |A| in double
  time RANK OVER ITER COUNT   {"ms": [...]} of COUNT calls
  matmul                      {"gflops": x}: 1024^3 in float32, the best of several
OVER is n_oversamples, ITER n_iter, -1 for "auto". The seed is the same in every call.
"""
import sys
import time

from rival_answers import answer

try:
    import numpy
    import sklearn
    from sklearn.utils.extmath import randomized_svd
    from threadpoolctl import threadpool_info
except ImportError as error:
    answer(missing=str(error))
    sys.exit(0)


class Matrix:
    def load(self, n, file):
        self.a = numpy.fromfile(file, dtype=numpy.float32).reshape(int(n), int(n))
        return {}

    def factors(self, rank, over, iterations):
        iterations = "auto" if iterations == "-1" else int(iterations)
        return randomized_svd(self.a, int(rank), n_oversamples=int(over), n_iter=iterations, random_state=0)

    @staticmethod
    def matmul(size=1024, repeats=20):
        a = numpy.ones((size, size), dtype=numpy.float32)
        best = float("inf")
        for _ in range(repeats):
            start = time.perf_counter()
            a @ a
            best = min(best, time.perf_counter() - start)
        return {"gflops": 2e-9 * size**3 / best}

    def error(self, *way):
        u, s, v = (factor.astype(numpy.float64) for factor in self.factors(*way))
        return {"error": float(numpy.linalg.norm(self.a - (u * s) @ v) / numpy.linalg.norm(self.a.astype(numpy.float64)))}

    def once(self, way):
        start = time.perf_counter()
        self.factors(*way)
        return (time.perf_counter() - start) * 1e3

    def time(self, *words):
        return {"ms": [self.once(words[:3]) for _ in range(int(words[3]))]}


def main():
    libraries = threadpool_info()
    answer(sklearn=sklearn.__version__, numpy=numpy.__version__,
           blas=[f"{one['internal_api']} {one['version']}" for one in libraries if one["user_api"] == "blas"],
           threads=max((one["num_threads"] for one in libraries if one["user_api"] == "blas"), default=0))
    matrix = Matrix()
    for line in sys.stdin:
        command, *words = line.rstrip("\n").split(" ", 2 if line.startswith("load ") else -1)
        answer(**{"load": matrix.load, "error": matrix.error, "time": matrix.time, "matmul": matrix.matmul}[command](*words))


if __name__ == "__main__":
    main()
