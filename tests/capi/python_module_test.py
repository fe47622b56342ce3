"""python_module_test.py RUN DIR: DIR has `images`, float32 [3, 28, 28, 1], and `scores`, what the run's network says of them on
one thread. Prints "done" where tessera_run.py says the same."""
import pathlib
import sys
import threading

import numpy
import tessera_run


def refusal(kind, call):
    try:
        call()
    except kind as error:
        return error
    raise AssertionError("nothing was refused")


def main(run, folder):
    images = numpy.fromfile(pathlib.Path(folder) / "images", numpy.float32).reshape(3, 28, 28, 1)
    expected = numpy.fromfile(pathlib.Path(folder) / "scores", numpy.float32).reshape(3, 10)
    network = tessera_run.Network(run, threads=1)
    assert network.description["inputs"][0]["shape"] == [28, 28, 1], network.description
    assert (network.run(images) == expected).all()
    assert (network.run(image=images) == expected).all()
    assert (network.run(images.transpose(1, 2, 0, 3).copy().transpose(2, 0, 1, 3)) == expected).all(), "strides are followed"
    out = numpy.zeros((3, 10), numpy.float32)
    assert network.run(images, out=out) is out and (out == expected).all()

    # No copy of the input is made: a view that cannot be written is read where it is, and so is its last image alone.
    images.setflags(write=False)
    view = images[2:]
    assert tessera_run._tensor(None, numpy.ascontiguousarray(view)).data == images.ctypes.data + 2 * 784 * 4
    assert numpy.abs(network.run(view) - expected[2:]).max() < 1e-4

    pixels = numpy.arange(2 * 784, dtype=numpy.uint8).reshape(2, 28, 28, 1)
    preprocessing = network.description["preprocessing"]
    normalised = ((pixels / 255 - preprocessing["mean"]) / preprocessing["std"]).astype(numpy.float32)
    assert numpy.abs(network.run(pixels) - network.run(normalised)).max() < 1e-4

    error = refusal(tessera_run.Error, lambda: network.run(images[:, :14]))
    assert str(error) == "tessera_output_shape: input 'image' is float32 [3, 14, 28, 1]; needs float32 or uint8 [batch, 28, 28, 1]"
    assert error.status == 1
    assert "input_count is 0" in str(refusal(tessera_run.Error, network.run))
    assert "float64" in str(refusal(TypeError, lambda: network.run(images.astype("float64"))))
    assert "out must be" in str(refusal(TypeError, lambda: network.run(images, out=numpy.zeros((10, 3), "float32").T)))
    assert "there is no" in str(refusal(tessera_run.Error, lambda: tessera_run.Network(run + "/none")))
    assert "no checkpoint '9'" in str(refusal(tessera_run.Error, lambda: tessera_run.Network(run, at="9")))
    assert tessera_run.Network(run, at="2").description["origin"]["step"] == 2

    said = [None] * 4
    threads = [threading.Thread(target=lambda i=i: said.__setitem__(i, network.run(images))) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all((one == expected).all() for one in said)
    network.set_threads(2)
    assert numpy.abs(network.run(images) - expected).max() < 1e-4
    print("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
