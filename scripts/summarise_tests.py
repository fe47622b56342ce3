#!/usr/bin/env python3
"""Says what ran and what was skipped in a run of ctest, and decides whether that is a pass.

Usage: summarise_tests.py TESTS_JSON JUNIT_XML SKIPS_TXT
TESTS_JSON is what `ctest --show-only=json-v1` lists, JUNIT_XML what `ctest --output-junit` wrote. A test whose command
has --gtest_output=xml:FILE is a GoogleTest program named after its folder, `core/ops` or `core/ops [1/2]`: its cases are
read from FILE and are called core/ops/<Suite>.<Case>. A program that ended early leaves no FILE: its cases are read from
its output, and the one that was running has failed.
A skip is allowed when SKIPS_TXT lists it: `name<TAB>reason`, where name may hold `*`, `#` starts a comment line, and a
reason may carry tags, `[gpu] no CUDA device`. TESSERA_REQUIRE=gpu,torch turns skips with these tags into failures.
Exit status: 0 when nothing failed, 1 when something did, 2 when an input cannot be read.
"""
import collections
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

# What ctest writes for a test that ran and asked to be skipped; every other "not run" is a test that is missing or broken.
SKIP_MESSAGES = ("SKIP_REGULAR_EXPRESSION_MATCHED", "SKIP_RETURN_CODE")
REPORT_OPTION = "--gtest_output=xml:"
# GoogleTest's lines on a case. What a case prints may end without a line break, so its last line may begin with that.
CASE_BEGINS = re.compile(r"\[ RUN      \] (\S+)$")
CASE_ENDS = re.compile(r"\[(       OK |  FAILED  |  SKIPPED )\] ([^\s,]+).* \(\d+ ms\)$")
RUNS_CASES = re.compile(r"^\[==========\] Running (\d+) tests? from ")
FAILED_SUITE = re.compile(r"^\[  FAILED  \] (.+: SetUpTestSuite or TearDownTestSuite)$")
OUTCOMES = {"       OK ": "passed", "  FAILED  ": "failed", "  SKIPPED ": "skipped"}
SHOWN_APART = 3  # skips of one suite for one reason


@dataclasses.dataclass
class Case:
    folder: str
    name: str
    outcome: str  # "passed", "failed" or "skipped"
    detail: str = ""  # why; of a skip, what the test itself says

    def from_table(self):
        """Whether it is a row of a table of values or types, Cpu/OpTable.Forward/relu, rather than written out."""
        return "/" in self.name.removeprefix(f"{self.folder}/")


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


def read_tests(path):
    """{name: (the report that its command asks for or None, its limit in seconds)} of what ctest was to run."""
    tests = {}
    for test in json.loads(pathlib.Path(path).read_text(encoding="utf-8"))["tests"]:
        reports = [word.removeprefix(REPORT_OPTION) for word in test.get("command", ()) if word.startswith(REPORT_OPTION)]
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", ())}
        tests[test["name"]] = pathlib.Path(reports[0]) if reports else None, float(properties.get("TIMEOUT", "inf"))
    return tests


def read_xml(path):
    # Messages hold what programs print, whatever its encoding.
    return ElementTree.fromstring(pathlib.Path(path).read_bytes().decode("utf-8", "replace"))


def ctest_outcome(result, limit):
    """("passed" | "failed" | "skipped", detail) of ctest's <testcase>, which does not tell a timeout from a crash."""
    if result is None:
        return "failed", "did not run"
    status, skipped = result.get("status", ""), result.find("skipped")
    if status == "run" and result.find("failure") is None:
        return "passed", ""
    if status == "disabled":
        return "skipped", "disabled"
    if status == "notrun" and skipped is not None:
        message = skipped.get("message", "")
        if message.startswith(SKIP_MESSAGES):
            return "skipped", ""
        return "failed", f"did not run: {message or 'no reason given'}"
    seconds = float(result.get("time", 0))
    return "failed", f"timed out after {seconds:.0f} s" if seconds > 0.99 * limit else "failed"


def output_of(result):
    return (result.findtext("system-out") or "").splitlines() if result is not None else []


def shorten(message):
    """A message of GoogleTest in one line."""
    return " ".join(line.strip() for line in message.strip().splitlines()[:5])[:300]


def skip_reason(message):
    """What a test gave to GTEST_SKIP: the first line says where."""
    where, _, reason = message.strip().partition("\n")
    return shorten(reason if re.search(r":\d+(: Skipped)?$", where) else message)


def cases_of_report(report, folder):
    """The cases of GoogleTest's XML. What a filter or another shard left out is not in it."""
    cases = []
    for case in report.iter("testcase"):
        name = f"{folder}/{case.get('classname')}.{case.get('name')}"
        failure, skipped = case.find("failure"), case.find("skipped")
        if failure is not None:
            cases.append(Case(folder, name, "failed", shorten(failure.get("message", ""))))
        elif case.get("status") == "notrun":
            cases.append(Case(folder, name, "skipped", "disabled"))
        elif skipped is not None or case.get("result") == "skipped":
            cases.append(Case(folder, name, "skipped", skip_reason("" if skipped is None else skipped.get("message", ""))))
        else:
            cases.append(Case(folder, name, "passed"))
    return cases


def cases_of_output(lines, folder):
    """(the cases that ended, the one that was running or None, how many did not begin, the last words) by GoogleTest's output."""
    cases, running, printed, begun, total = [], None, [], 0, 0
    for line in lines:
        count, begins, ends = RUNS_CASES.search(line), CASE_BEGINS.search(line), CASE_ENDS.search(line)
        if count:
            total = int(count[1])
        elif begins:
            running, printed, begun = begins[1], [], begun + 1
        elif ends and ends[2] == running:
            outcome, message = OUTCOMES[ends[1]], "\n".join(printed)
            detail = {"passed": "", "failed": shorten(message), "skipped": skip_reason(message)}[outcome]
            cases.append(Case(folder, f"{folder}/{running}", outcome, detail))
            running = None
        else:
            printed.append(line)
    return cases, running, max(0, total - begun), next((line.strip() for line in reversed(printed) if line.strip()), "")


def cases_of_program(test, result, report, limit):
    """What a GoogleTest program did, case by case; at least one has failed where the program has."""
    folder = test.partition(" [")[0]
    outcome, why = ctest_outcome(result, limit)
    try:
        cases = cases_of_report(read_xml(report), folder)
    except (OSError, ElementTree.ParseError):
        cases, running, left, last_words = cases_of_output(output_of(result), folder)
        whys = ["the program ended early" if why in ("", "failed") else why]
        if left:
            whys.append(f"not run behind it: {left}")
        if last_words:
            whys.append(last_words[:200])
        return cases + [Case(folder, f"{folder}/{running}" if running else test, "failed", "; ".join(whys))]
    if outcome == "failed" and not any(case.outcome == "failed" for case in cases):
        suites = [match[1] for match in map(FAILED_SUITE.search, output_of(result)) if match]
        cases.append(Case(folder, test, "failed", "; ".join([why, *suites])))
    if not cases:
        cases.append(Case(folder, test, "failed", "it ran no case"))
    return cases


def case_of_command(test, result, limit):
    """A test that is no GoogleTest program, or one whose cases are counted elsewhere, is one case."""
    outcome, why = ctest_outcome(result, limit)
    if outcome == "failed":
        cases, running, *_ = cases_of_output(output_of(result), "")
        names = [case.name.removeprefix("/") for case in cases if case.outcome == "failed"]
        why = ": ".join([why, ", ".join(names + ([running] if running else []))]).removesuffix(": ")
    return Case(test.rpartition("/")[0] or "scripts", test, outcome, why)


def judge_skip(case, allowed, required):
    """The case, failed when the list does not allow its skip."""
    said = f" ({case.detail})" if case.detail else ""
    for pattern, reason, tags in allowed:
        if fnmatch.fnmatchcase(case.name, pattern):
            if tags & required:
                why = f"skipped{said}, but TESSERA_REQUIRE asks for {', '.join(sorted(tags & required))}: {reason}"
                return dataclasses.replace(case, outcome="failed", detail=why)
            return dataclasses.replace(case, detail=case.detail or reason)
    return dataclasses.replace(case, outcome="failed", detail=f"skipped{said}, and tests/skips.txt does not list it")


def lines_of_skips(cases):
    """A line for each, or for all of a suite that give one reason."""
    groups = collections.defaultdict(list)
    for case in cases:
        groups[case.name.partition(".")[0], case.detail].append(case)
    for (suite, detail), group in groups.items():
        if len(group) > SHOWN_APART:
            yield f"  {suite}.* ({len(group)} cases): {detail}"
        else:
            yield from (f"  {case.name}: {detail}" for case in group)


def print_summary(cases):
    """The last line is what scripts/test promises. Returns how many failed."""
    folders = collections.defaultdict(collections.Counter)
    for case in cases:
        folders[case.folder][case.outcome] += 1
    print(f"\nran {len(cases)} cases, {sum(case.from_table() for case in cases)} of them rows of tables:")
    for folder, tally in sorted(folders.items()):
        print(f"  {folder}: " + ", ".join(f"{tally[k]} {k}" for k in ("passed", "failed", "skipped") if tally[k]))
    of = {outcome: [case for case in cases if case.outcome == outcome] for outcome in ("passed", "failed", "skipped")}
    if of["skipped"]:
        print("skipped:", *lines_of_skips(of["skipped"]), sep="\n")
    if of["failed"]:
        print("failed:", *(f"  {case.name}: {case.detail}" for case in of["failed"]), sep="\n")
    print(", ".join(f"{len(of[outcome])} {outcome}" for outcome in ("passed", "failed", "skipped")), flush=True)
    return len(of["failed"])


def main(arguments):
    if len(arguments) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        tests = read_tests(arguments[0])
        results = {result.get("name", ""): result for result in read_xml(arguments[1]).iter("testcase")}
        allowed = read_allowed_skips(arguments[2])
    except (OSError, ValueError, KeyError, ElementTree.ParseError) as error:
        print(f"summarise_tests: {error}", file=sys.stderr)
        return 2
    required = {word.strip() for word in os.environ.get("TESSERA_REQUIRE", "").split(",") if word.strip()}

    cases = []
    for test, (report, limit) in tests.items():
        result = results.get(test)
        cases += cases_of_program(test, result, report, limit) if report else [case_of_command(test, result, limit)]
    if not cases:
        cases.append(Case("tests", "tests", "failed", "no test ran"))
    cases = [judge_skip(case, allowed, required) if case.outcome == "skipped" else case for case in cases]
    return 1 if print_summary(cases) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
