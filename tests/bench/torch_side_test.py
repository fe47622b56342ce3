#!/usr/bin/env python3
"""bench/torch_side.py beside a stand-in for torch: what it says of memory."""
import json
import pathlib
import subprocess
import sys
import unittest

BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
MIB = 64
# Of torch what the module itself uses. The first optimiser takes memory, as one that imports modules does.
PROGRAM = f"""
import sys
from unittest.mock import MagicMock
torch = MagicMock(__version__="2.15")
torch.get_num_threads.return_value = 2
torch.__config__ = MagicMock()
torch.__config__.show.return_value = "CPU capability usage: AVX2"
torch.backends.mkldnn.is_available.return_value = True
held = []
torch.optim.SGD.side_effect = lambda parameters, lr: held.append(b"x" * ({MIB} << 20)) or MagicMock()
sys.modules.update({{"torch": torch, "load_tessera": MagicMock()}})
sys.path.insert(0, {str(BENCH)!r})
sys.argv = ["side", "folder"]
import torch_side
torch_side.serve(lambda options, layout: {{}}, trains=True)
"""


class Memory(unittest.TestCase):
    def test_what_is_imported_with_the_first_optimiser_belongs_to_the_start(self):
        done = subprocess.run([sys.executable, "-c", PROGRAM], input="memory\n", capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        environment, memory = map(json.loads, done.stdout.splitlines())
        self.assertIs(environment["imported_first"], True)
        self.assertGreater(memory["start_kib"], MIB << 10)
        self.assertLess(memory["peak_kib"] - memory["start_kib"], MIB << 9)


if __name__ == "__main__":
    unittest.main()
