#!/usr/bin/env python3
"""Says what ran and what was skipped in a JUnit file of ctest, and decides whether that is a pass.

Usage: summarise_tests.py JUNIT_XML SKIPS_TXT
A skip is allowed when SKIPS_TXT lists it: `name<TAB>reason`, where name may hold `*`, `#` starts a comment line, and a
reason may carry tags, `[gpu] no CUDA device`. TESSERA_REQUIRE=gpu,torch turns skips with these tags into failures.
Exit status: 0 when nothing failed, 1 when something did, 2 when an input cannot be read.
"""
import collections
import fnmatch
import os
import re
import sys
import xml.etree.ElementTree as ElementTree

# What ctest writes for a test that ran and asked to be skipped; every other "not run" is a test that is missing or broken.
SKIP_MESSAGES = ("SKIP_REGULAR_EXPRESSION_MATCHED", "SKIP_RETURN_CODE")


def read_allowed_skips(path):
    """[(glob, reason, tags)] of a skips file; exits 2 on a line without a reason."""
    allowed = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, start=1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            name, tab, reason = line.partition("\t")
            if not tab or not name.strip() or not reason.strip():
                print(f"{path}:{number}: expected name<TAB>reason, found: {line!r}", file=sys.stderr)
                sys.exit(2)
            allowed.append((name.strip(), reason.strip(), set(re.findall(r"\[(\w+)\]", reason))))
    return allowed


def outcome(case):
    """("passed" | "failed" | "skipped", detail) of one <testcase>."""
    status = case.get("status", "")
    skipped = case.find("skipped")
    if status == "run" and case.find("failure") is None:
        return "passed", ""
    if status == "disabled":
        return "skipped", "disabled"
    if status == "notrun" and skipped is not None:
        message = skipped.get("message", "")
        if message.startswith(SKIP_MESSAGES):
            return "skipped", message
        return "failed", f"did not run: {message or 'no reason given'}"
    failure = case.find("failure")
    return "failed", (failure.get("message", "") if failure is not None else "") or "failed"


def judge_skip(name, allowed, required):
    """("skipped", reason) when the list allows this skip, else ("failed", why)."""
    bare = name.partition("#")[0].rstrip()  # ctest appends "  # GetParam() = ..." to what a parameter names
    for pattern, reason, tags in allowed:
        if fnmatch.fnmatchcase(bare, pattern):
            if tags & required:
                return "failed", f"skipped, but TESSERA_REQUIRE asks for {', '.join(sorted(tags & required))}: {reason}"
            return "skipped", reason
    return "failed", "skipped, and tests/skips.txt does not list it"


def main(arguments):
    if len(arguments) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    junit, skips = arguments
    try:
        cases = list(ElementTree.parse(junit).getroot().iter("testcase"))
        allowed = read_allowed_skips(skips)
    except (OSError, ElementTree.ParseError) as error:
        print(f"summarise_tests: {error}", file=sys.stderr)
        return 2
    required = {word.strip() for word in os.environ.get("TESSERA_REQUIRE", "").split(",") if word.strip()}

    counts = collections.Counter()
    folders = collections.defaultdict(collections.Counter)
    lines = {"skipped": [], "failed": []}
    for case in cases:
        name = case.get("name", "")
        result, detail = outcome(case)
        if result == "skipped":
            result, detail = judge_skip(name, allowed, required)
        counts[result] += 1
        folders[name.rpartition("/")[0] if "." not in name else name.split(".")[0].rpartition("/")[0]][result] += 1
        if result != "passed":
            lines[result].append(f"  {name}: {detail}")

    print("\nran:")
    for folder, tally in sorted(folders.items()):
        print(f"  {folder or 'scripts'}: " + ", ".join(f"{tally[k]} {k}" for k in ("passed", "failed", "skipped") if tally[k]))
    for result in ("skipped", "failed"):
        if lines[result]:
            print(f"{result}:", *lines[result], sep="\n")
    if not cases:
        print("failed:\n  no test ran")
        counts["failed"] += 1
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped", flush=True)
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
