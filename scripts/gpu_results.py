"""What the lines of scripts/gpu_check gave: results of GoogleTest programs, rows of the op table, the table at the end."""
import fnmatch
import io
import itertools
import json
import tarfile

# The rows of the op table, by device: the part of the name behind the slash is the row.
OP_ROWS = {"cpu": "Cpu/OpTable.ForwardMatchesReference/", "cuda": "Cuda/OpTable.ForwardMatchesReference/"}
STATES = ("passed", "failed", "timed out", "not run", "skipped")
GOOD = ("passed", "skipped")
LOG_BYTES = 64 << 10  # of each log's end that is packed


def cases_of(report):
    """[(name, "passed" | "failed" | "skipped", detail)] of a report of --gtest_output=json."""
    cases = []
    for suite in report.get("testsuites", []):
        for case in suite.get("testsuite", []):
            if case.get("status") != "RUN":
                continue  # left out by a filter or another shard
            name = f"{suite['name']}.{case['name']}"
            if case.get("failures"):
                cases.append((name, "failed", first_line(case["failures"][0].get("failure", ""))))
            elif case.get("result") == "SKIPPED":
                notes = case.get("skipped") or [{}]
                cases.append((name, "skipped", last_line(notes[0].get("message", ""))))
            else:
                cases.append((name, "passed", ""))
    return cases


def first_line(text):
    return " ".join(text.split("\n")[:3])[:160]


def last_line(text):
    lines = [line for line in text.split("\n") if line.strip()]
    return lines[-1].strip()[:160] if lines else ""


def verdict(text):
    """What a benchmark says of its targets: the last line that begins so, or ""."""
    return last_line("\n".join(line for line in text.split("\n") if line.startswith("verdict: "))).removeprefix("verdict: ")


def ctest_names(program, case):
    """What ctest may call a case of test_core_ops: the folder's separators are not known from the program's name."""
    words = program.removeprefix("test_").split("_")
    for joints in itertools.product("/_", repeat=len(words) - 1):
        folder = "".join(word + joint for word, joint in zip(words, [*joints, ""]))
        yield f"{folder}/{case}"


def judge_skip(program, case, allowed, required, detail=""):
    """("skipped" | "failed", why): `allowed` is tests/skips.txt as [(glob, reason, tags)]; `required` has "gpu" where one is."""
    if program.startswith("test_cuda_") or "needs a GPU" in detail:
        if "gpu" in required:
            return "failed", f"skipped, though a GPU is there: {detail}"
        return "skipped", detail or "needs a GPU"
    for name in ctest_names(program, case):
        for pattern, reason, tags in allowed:
            if fnmatch.fnmatchcase(name, pattern):
                if tags & required:
                    return "failed", f"skipped, though a GPU is there: {reason}"
                return "skipped", reason
    return "failed", "skipped, and tests/skips.txt does not list it"


def read_skips(path):
    """tests/skips.txt: name<TAB>reason with [tags]."""
    allowed = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        name, tab, reason = line.partition("\t")
        if tab and not line.startswith("#"):
            allowed.append((name.strip(), reason.strip(), {word.strip("[]") for word in reason.split() if word.startswith("[")}))
    return allowed


def op_rows(cases):
    """{device: set of the rows that passed} of [(name, outcome, detail)]."""
    passed = {device: set() for device in OP_ROWS}
    for name, outcome, _ in cases:
        for device, start in OP_ROWS.items():
            if name.startswith(start) and outcome == "passed":
                passed[device].add(name.removeprefix(start))
    return passed


def op_rows_line(cases):
    """("op rows on cuda: 61 of 61", whether every row that passed on the CPU did so on the GPU too)."""
    passed = op_rows(cases)
    shared = passed["cpu"] & passed["cuda"]
    line = f"op rows on cuda: {len(shared)} of {len(passed['cpu'])}"
    return line, bool(passed["cpu"]) and shared == passed["cpu"]


def table(results):
    """One row for each line that was to run, in the order in which they were listed."""
    rows = [("part", "line", "state", "seconds", "what")]
    for result in results:
        rows.append((result["part"], result["name"], result["state"], f"{result['seconds']:.1f}", result["detail"]))
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = ["  ".join([*(row[i].rjust(widths[i]) if i == 3 else row[i].ljust(widths[i]) for i in range(4)), row[4]]).rstrip()
             for row in rows]
    return "\n".join([*lines, counts_of(results)])


def counts_of(results):
    return ", ".join(f"{sum(result['state'] == state for result in results)} {state}" for state in STATES)


def append_json(path, rows):
    with open(path, "a", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row) + "\n")


def is_told(result):
    """Whether the page has a line of it: what did not pass, every benchmark for its verdict, and how many op rows passed."""
    return result["state"] not in GOOD or result["part"] in ("bench", "rivals") or result["name"] == "op-rows"


def summary(results, shared):
    """A page for those who were not there: what ran where, how many lines of each part passed, then the lines that tell more, bad ones
    before good ones."""
    lines = [f"commit {shared['commit'] or 'of the tree'}, {shared['gpu']}, driver {shared['driver']}", counts_of(results)]
    for part, of_part in itertools.groupby(results, key=lambda result: result["part"]):
        of_part = list(of_part)
        chosen = sorted(filter(is_told, of_part), key=lambda result: result["state"] in GOOD)
        lines += ["", f"{part}: {counts_of(of_part)}"]
        lines += [f"  {result['state']:<9}  {result['name']}  {result['detail']}" for result in chosen]
    return "\n".join(lines) + "\n"


def pack(folder, page):
    """Writes FOLDER.tar.gz and gives its path: summary.txt, the rows, the tests' reports, the ends of the logs."""
    path = folder.with_name(folder.name + ".tar.gz")
    with tarfile.open(path, "w:gz") as archive:
        add_bytes(archive, f"{folder.name}/summary.txt", page.encode())
        for file in sorted(file for file in folder.rglob("*") if file.is_file()):
            add_bytes(archive, f"{folder.name}/{file.relative_to(folder)}", end_of(file))
    return path


def end_of(file):
    """All of it, or a log's last bytes."""
    with open(file, "rb") as content:
        if file.suffix == ".log":
            content.seek(max(0, file.stat().st_size - LOG_BYTES))
        return content.read()


def add_bytes(archive, name, content):
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    archive.addfile(entry, io.BytesIO(content))
