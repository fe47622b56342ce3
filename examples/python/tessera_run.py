"""Runs networks that tessera trained, through libtessera.so, with NumPy arrays in and out. One file, to be copied.

    import numpy, tessera_run

    network = tessera_run.Network("runs/digits/1", threads=2)     # a run, a checkpoint, or a file of tessera compress
    print(network.description["inputs"])                          # include/tessera.h says what the keys are
    scores = network.run(numpy.zeros((8, 28, 28, 1), "uint8"))    # float32 [8, 10]; inputs by name: run(tokens=t, key_mask=m)

Arrays that are contiguous are read where they are; others are copied. A network may be used by several threads at once, and other
threads of Python go on while it computes. TESSERA_LIBRARY names the library where the system does not find libtessera.so.1.
"""
import ctypes
import json
import os

import numpy

_ABI = 1
_MOST_AXES = 8
_DTYPES = {numpy.dtype("float32"): 0, numpy.dtype("int64"): 1, numpy.dtype("uint8"): 2}


class Error(Exception):
    """What tessera_last_error() said; `status` is the TESSERA_... number of include/tessera.h."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


class _Options(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int32), ("at", ctypes.c_char_p), ("precision", ctypes.c_char_p)]


class _Tensor(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", ctypes.c_int32), ("rank", ctypes.c_int32),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("data", ctypes.c_void_p)]


def _load_library():
    library = ctypes.CDLL(os.environ.get("TESSERA_LIBRARY", "libtessera.so.%d" % _ABI))
    network, tensors, count = ctypes.c_void_p, ctypes.POINTER(_Tensor), ctypes.c_int32
    for name, result, arguments in (
            ("abi_version", ctypes.c_int32, []),
            ("last_error", ctypes.c_char_p, []),
            ("load", ctypes.c_int32, [ctypes.c_char_p, ctypes.POINTER(_Options), ctypes.POINTER(network)]),
            ("free", None, [network]),
            ("describe", ctypes.c_int32, [network, ctypes.POINTER(ctypes.c_char_p)]),
            ("set_threads", ctypes.c_int32, [network, ctypes.c_int32]),
            ("run", ctypes.c_int32, [network, tensors, count, tensors, count]),
            ("output_shape", ctypes.c_int32, [network, tensors, count, ctypes.POINTER(ctypes.c_int64),
                                              ctypes.POINTER(ctypes.c_int32)])):
        function = getattr(library, "tessera_" + name)
        function.restype, function.argtypes = result, arguments
    if library.tessera_abi_version() != _ABI:
        raise ImportError("libtessera has the ABI %d, tessera_run.py needs %d" % (library.tessera_abi_version(), _ABI))
    return library


_library = _load_library()


def _check(status):
    if status != 0:
        raise Error(status, _library.tessera_last_error().decode("utf-8", "replace"))


def _bytes(text):
    return None if text is None else os.fsencode(text)


def _tensor(name, array):
    """A view of a contiguous array, which must outlive it."""
    if array.dtype not in _DTYPES:
        raise TypeError("%s is %s; needs float32, int64 or uint8" % (name or "the input", array.dtype))
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    return _Tensor(_bytes(name), _DTYPES[array.dtype], array.ndim, shape, array.ctypes.data)


class Network:
    """`at`: of a run the stage, the step or "best", else its newest checkpoint. `threads`: 0 takes every processor."""

    def __init__(self, path, threads=0, at=None, precision=None):
        self._network = ctypes.c_void_p()
        options = _Options(ctypes.sizeof(_Options), threads, _bytes(at), _bytes(precision))
        _check(_library.tessera_load(os.fsencode(path), ctypes.byref(options), ctypes.byref(self._network)))
        text = ctypes.c_char_p()
        _check(_library.tessera_describe(self._network, ctypes.byref(text)))
        self.description = json.loads(text.value)

    def __del__(self):
        if _library is not None:  # at the end of a program modules may be gone
            _library.tessera_free(self._network)

    def set_threads(self, threads):
        _check(_library.tessera_set_threads(self._network, threads))

    def run(self, *first, out=None, **named):
        """The scores of a batch, float32, into `out` where that is given: contiguous, of the output's shape. One array without a
        name is the first input."""
        arrays = [(None, array) for array in first] + list(named.items())
        arrays = [(name, numpy.ascontiguousarray(array)) for name, array in arrays]
        inputs = (_Tensor * len(arrays))(*(_tensor(name, array) for name, array in arrays))
        if out is None:
            out = numpy.empty(self._output_shape(inputs), numpy.float32)
        elif not (isinstance(out, numpy.ndarray) and out.flags.c_contiguous and out.flags.writeable):
            raise TypeError("out must be a contiguous array that can be written")
        output = _tensor(None, out)
        _check(_library.tessera_run(self._network, inputs, len(arrays), ctypes.byref(output), 1))
        return out

    def _output_shape(self, inputs):
        shape, rank = (ctypes.c_int64 * _MOST_AXES)(), ctypes.c_int32()
        _check(_library.tessera_output_shape(self._network, inputs, len(inputs), shape, ctypes.byref(rank)))
        return tuple(shape[:rank.value])
