#!/usr/bin/env python3
"""Compiles CUDA sources to machine code and reads the assembler's report: no kernel may spill registers or keep a stack frame,
which an array indexed at run time needs as well. Needs nvcc, no GPU. Prints a line for each kernel; exits 1 on any fault.

  kernel_resources.py --nvcc NVCC --architectures 80 90 --flags "-std=c++20 ..." -- FILE.cu ...
"""
import argparse
import concurrent.futures
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

PROPERTIES = re.compile(r"Function properties for (\S+)")
FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
USED = re.compile(r"Used (\d+) registers")


def parse(report):
    """(function, registers, stack, spill stores, spill loads) for each function; registers are None of one that is no kernel."""
    functions = []
    for line in report.splitlines():
        if match := PROPERTIES.search(line):
            functions.append([match.group(1), None, None, None, None])
        elif functions and (match := FRAME.search(line)):
            functions[-1][2:] = map(int, match.groups())
        elif functions and functions[-1][1] is None and (match := USED.search(line)):
            functions[-1][1] = int(match.group(1))
    return functions


def faults(functions):
    """Sentences, one for each fault. A report without kernels, or with one that could not be read, is a fault too."""
    found = []
    if not any(registers is not None for _, registers, *_ in functions):
        found.append("the assembler reports no kernel")
    for name, _, *sizes in functions:
        if None in sizes:
            found.append(f"the report of {name} has no line of its stack and spills")
        elif any(sizes):
            found.append(f"{name} has {sizes[0]} bytes of stack, {sizes[1]} of spill stores and {sizes[2]} of spill loads; "
                         "all must be 0")
    return found


def readable(text):
    tool = shutil.which("cu++filt") or shutil.which("c++filt")
    return subprocess.run([tool], input=text, capture_output=True, text=True, check=True).stdout if tool else text


def compile_one(nvcc, flags, source, architecture, folder):
    output = os.path.join(folder, f"{os.path.basename(source)}.{architecture}.cubin")
    target = f"-gencode=arch=compute_{architecture},code=sm_{architecture}"
    command = [nvcc, *flags, "-cubin", target, "-Xptxas=-v", source, "-o", output]
    done = subprocess.run(command, capture_output=True, text=True)
    report = done.stdout + done.stderr
    if done.returncode != 0:
        return [], [f"does not compile:\n{report}"]
    functions = parse(report)
    return functions, faults(functions)


def check(arguments):
    jobs = [(source, architecture) for source in arguments.sources for architecture in arguments.architectures]
    flags = shlex.split(arguments.flags)
    failed = 0
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(max(1, os.cpu_count() or 1)) as pool:
        results = pool.map(lambda job: compile_one(arguments.nvcc, flags, *job, folder), jobs)
        for (source, architecture), (functions, found) in zip(jobs, results):
            place = f"{os.path.basename(source)} sm_{architecture}"
            for name, registers, *_ in functions:
                if registers is not None:
                    print(readable(f"{place}: {registers} registers: {name}"))
            for fault in found:
                print(readable(f"{place}: FAULT: {fault}"))
            failed += len(found)
    print(f"{len(jobs)} compilations, {failed} faults")
    return 1 if failed or not jobs else 0


def self_test():
    clean = ("ptxas info    : Compiling entry function '_Z1av' for 'sm_90'\n"
             "ptxas info    : Function properties for _Z1av\n"
             "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
             "ptxas info    : Used 32 registers, used 1 barriers\n")
    spilling = clean.replace("_Z1av", "_Z1bv").replace("0 bytes spill stores, 0", "12 bytes spill stores, 24")
    framed = clean.replace("0 bytes stack", "16 bytes stack")
    assert parse(clean) == [["_Z1av", 32, 0, 0, 0]]
    assert faults(parse(clean)) == []
    assert faults(parse(clean + spilling)) == [
        "_Z1bv has 0 bytes of stack, 12 of spill stores and 24 of spill loads; all must be 0"]
    assert faults(parse(framed)) == ["_Z1av has 16 bytes of stack, 0 of spill stores and 0 of spill loads; all must be 0"]
    assert faults(parse("")) == ["the assembler reports no kernel"]
    assert len(faults(parse(clean.replace("bytes stack frame", "bytes of frame")))) == 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nvcc")
    parser.add_argument("--architectures", nargs="+", default=[])
    parser.add_argument("--flags", default="")
    parser.add_argument("--self-test", action="store_true")
    parser.add_argument("sources", nargs="*")
    arguments = parser.parse_args()
    return self_test() if arguments.self_test else check(arguments)


if __name__ == "__main__":
    sys.exit(main())
