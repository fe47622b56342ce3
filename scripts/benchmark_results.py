"""Result lines of benchmark programs: reading them, which go together, what to say of those. Used by benchmark_tables.py."""
import functools
import json
import operator
import re
import sys
from statistics import median

from benchmark_markdown import central, paragraph

CONDITIONS = ("commit", "processor", "compute_threads", "omp_wait_policy", "onednn", "compiler", "build_type", "rounds")
WHERE_RECORDED = ("kernel_isa", "steps_per_round", "sweep_steps", "sweep_runs", "held_to")  # conditions that some lines do not have
AGREEMENT = 0.05
ALONE = 0.1  # how far a side's time in turns may be from its time alone without a note


class Unusable(Exception):
    """A result line or a page that tables cannot be made from."""


class Line:
    """One result, which says where it stands when a key is missing."""

    def __init__(self, value, place):
        self.value, self.place = value, place

    def __getitem__(self, key):
        if not isinstance(self.value, dict) or key not in self.value:
            raise Unusable(f"{self.place}: there is no key '{key}'")
        found = self.value[key]
        return Line(found, f"{self.place}: {key}") if isinstance(found, dict) else found

    def __contains__(self, key):
        return key in self.value


def read_lines(path):
    if not path.is_file():
        return []
    lines = []
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            value = json.loads(text)
        except ValueError as error:
            raise Unusable(f"{path}:{number}: not JSON: {error}") from error
        line = Line(value, f"{path}:{number}")
        if line["commit"].endswith("-dirty"):
            print(f"benchmark_tables: {line.place}: ignored: no commit holds what {line['commit']} was", file=sys.stderr)
        else:
            lines.append(line)
    return lines


def conditions_of(line):
    """All that `conditions` prints, apart from what varies between the rows of a table."""
    return [line[key] for key in CONDITIONS] + [line.value.get(key) for key in WHERE_RECORDED]


def same(lines, *keys):
    """The lines that agree with the last one in their conditions and these keys."""
    wanted = conditions_of(lines[-1])
    return [line for line in lines if conditions_of(line) == wanted and all(line[key] == lines[-1][key] for key in keys)]


def span(numbers, digits, joint):
    """From the least to the largest; one of them where they are printed alike."""
    return joint.join(dict.fromkeys(format(number, digits) for number in (min(numbers), max(numbers))))


def counted(ratio):
    """What of a ratio a target is held against: the lower of the median of the rounds' ratios and the ratio of the medians."""
    return min(ratio["median"], ratio["of_medians"]) if "of_medians" in ratio else ratio["median"]


def sides(line):
    """(what it is called, its times) of each side that a line names."""
    for key, value in line.value.items():
        if not isinstance(value, dict):
            continue
        times = value if key.endswith("_ms") or "rounds" in value or "alone" in value else value.get("ms")
        if isinstance(times, dict) and "median" in times:
            yield key.removesuffix("_ms").replace("_", " ").replace("torch", "PyTorch"), times


def keeps_rounds(line):
    return any("rounds" in times for _, times in sides(line))


def without_rounds(shown):
    """A paragraph on the rows whose lines keep less than others; `shown` has the lines of tables by their program."""
    def places(keeps_less):
        commits = {program: dict.fromkeys(line["commit"] for line in lines if "ratio" in line and keeps_less(line))
                   for program, lines in shown.items()}
        return "; ".join(f"`{program}` at {', '.join(each)}" for program, each in commits.items() if each)
    old = places(lambda line: not keeps_rounds(line))
    one = places(lambda line: not keeps_rounds(line) and "of_medians" not in line["ratio"])
    if not old:
        return []
    medians = f" Those of {one} carry the median of the rounds' ratios and not the ratio of the medians." if one else ""
    return paragraph(f"Older rows lack their rounds and the times alone: those of {old}.{medians}")


def beside_alone(lines, case):
    """A note on sides that turns slowed, or that were slow alone. `case` names a line."""
    found = [f"{case(line)}: {side} {times['median'] / times['alone']:.2f}" for line in lines for side, times in sides(line)
             if "alone" in times and abs(times["median"] / times["alone"] - 1) > ALONE]
    if not found:
        return []
    return paragraph(f"Sides whose time in turns is more than {100 * ALONE:.0f} % from their time alone, as time in turns over time alone: "
                     f"{'; '.join(found)}.")


def effort(lines):
    """How long what lines say was measured."""
    line = lines[-1]
    steps = f" of {line['steps_per_round']} steps" if "steps_per_round" in line.value else ""
    sweep = ""
    if "sweep_steps" in line.value:
        sweep = f"; PyTorch's settings swept in {line['sweep_steps']} steps each"
    if "sweep_runs" in line.value:
        sweep = f"; PyTorch's ways swept in {line['sweep_runs']} forwards or more each"
    if asked := re.search(r"--ways (\S+)", line.value.get("command", "")):
        sweep += f", those alone whose name has '{asked.group(1)}'"
    both = ""
    if any("ratio" in each and "of_medians" in each["ratio"] for each in lines):
        both = ", behind a semicolon the ratio of the medians (a target counts the lower of the two)"
    return f"medians of {line['rounds']} interleaved rounds{steps}, p10 to p90 in brackets{both}{sweep}."


def days(lines):
    return " to ".join(dict.fromkeys((min(line["date"][:10] for line in lines), max(line["date"][:10] for line in lines))))


def conditions(lines, program):
    """What held for these lines, which share their conditions; the clock of a machine varies, so its peak is a range."""
    last = lines[-1]
    own = f", own kernels {last['kernel_isa']}" if "kernel_isa" in last.value else ""
    peaks = [line["fma_peak_gflops"] for line in lines if "fma_peak_gflops" in line.value and
             line.value.get("fma_peak_threads", line["compute_threads"]) == line["compute_threads"]]
    peak = f"; multiply-add peak {span(peaks, '.0f', '-')} GFLOP/s" if peaks else ""
    return (
        f"`{program}` at {last['commit']}, {days(lines)}: "
        f"{last['processor']}, {last['compute_threads']} threads, OMP_WAIT_POLICY {last['omp_wait_policy']}, "
        f"oneDNN {last['onednn']}{own}, {last['compiler']} {last['build_type']}{peak}; {effort(lines)}"
    )


def where(lines):
    """When and on what lines of one commit were measured."""
    machines = "; ".join(dict.fromkeys(f"{line['processor']}, {line['compute_threads']} threads" for line in lines))
    return f"Measured {days(lines)}: {machines}, at {lines[-1]['commit']}."


def failures(lines):
    """How many of PyTorch's settings failed; in the worst run, where runs differ."""
    counts = [(sum("failed" in row for row in line["torch_sweep"]), len(line["torch_sweep"]))
              for line in lines if "torch_sweep" in line.value]
    failed, tried = max(counts, default=(0, 0))
    if failed == 0:
        return ""
    return f"{'' if len(set(counts)) == 1 else 'Up to '}{failed} of {tried} settings of PyTorch failed. "


def torch_way(line, mode):
    """The rival's mode, threads and what these do while they wait, which is not what ours do."""
    settings = line.value.get("torch_settings", {})
    if "wait_policy" not in settings:  # from before there was a choice
        return mode
    threads = line["torch"]["threads"]
    return f"{mode}, {threads} thread{'' if threads == 1 else 's'}, {settings['wait_policy']} wait"


def judged(number, target, met=operator.ge):
    return f"{target:g}: {'met' if met(number, target) else 'missed'}"


def verdict(line):
    return judged(counted(line["ratio"]), line["target"]) if "target" in line.value else ""


def reached(row, key, target_key, met=operator.ge):
    """A number of a row, or the ratio there, with the verdict on it where it has a target; nothing where the row lacks it."""
    if key not in row:
        return ""
    value = row[key]
    text, number = (central(value), counted(value)) if isinstance(value, dict) else (f"{value:.2f}", value)
    return text + (f", {judged(number, row[target_key], met)}" if row.get(target_key) is not None else "")


# KiB of resident memory that PyTorch imports with its first optimiser, by the major number of its version (`import torch`, then a step
# of SGD and of AdamW, of 1.13 and 2.15).
IMPORTS_KIB = {"1": 0, "2": 161336}


def imports_kib(line):
    """What a peak of PyTorch's holds of imports: nothing since its side imports all at its start."""
    torch = line["torch"]
    if "imported_first" in torch or "gpu" in torch:  # memory of a GPU holds no imports
        return 0
    major = torch["version"].split(".")[0]
    if major not in IMPORTS_KIB:
        raise Unusable(f"{line.place}: what PyTorch {major} imports with its first optimiser is not known")
    return IMPORTS_KIB[major]


def without_imports(line):
    """A line of train_bench with the memory of both sides alone: what PyTorch imports is taken off its peak."""
    row = line.value
    if "torch_memory_kib" not in row:
        return row
    state = row.get("state_kib", 0)
    theirs = row["torch_memory_kib"] - imports_kib(line)
    corrected = row | {"memory_ratio": row["tessera_memory_kib"] / theirs}
    if "beyond_state_ratio" in row:
        corrected["beyond_state_ratio"] = (row["tessera_memory_kib"] - state) / (theirs - state)
    return corrected


def streaming(lines):
    """What set the pace of memory; the fastest pass may differ between rows."""
    passes = " or ".join(dict.fromkeys(line["stream"] for line in lines if "stream" in line.value))
    rates = span([line["stream_gbytes_per_second"] for line in lines], ".1f", " to ")
    return f"y = a x{': ' if passes else ''}{passes}, {rates} GB/s"


def precision_of(line):
    return line.value.get("precision", "f32")  # lines without one are from before there was a choice


def compressed(line):
    """Of a network with compressed layers beside ours dense, which stands between those against PyTorch."""
    return "format" in line.value


def compressed_key(line):
    return line["format"], line["model"], line["batch"], line["shape"], line["phase"]


def network_key(line):
    if compressed(line):
        return compressed_key(line)
    return line["model"], precision_of(line), line["batch"], line["shape"], line["torch"]["version"]


def infer_key(line):
    return line["model"], line["batch"], line["shape"], line["torch"]["version"]


def op_key(line):
    key = line["op"], line["shape"], line["pass"]
    return (*key, line["library"], line["torch"]["version"]) if "library" in line.value else key


def factored_key(line):
    key = line["format"], line["shape"], line["ranks"], line["phase"]
    return (*key, line["library"]) if "library" in line.value else key


def linalg_key(line):
    if line["op"] == "permute":
        return op_key(line)
    return line["op"], line["equation"] if line["op"] == "contract" else line["spectrum"], line["size"]


def sparse_key(line):
    density = f"{line['density']:.2g}" if "density" in line.value else ""
    key = line["format"], density, line["shape"], precision_of(line), line["phase"], line.value.get("held_to", "")
    return (*key, line["library"], line["torch"]["version"]) if "library" in line.value else key


def attention_key(line):
    key = line["format"], line["shape"]
    return (*key, line["library"], line["torch"]["version"]) if "library" in line.value else key


def loader_key(line):
    return line["op"], line["cores"]


def outlet_key(line):
    return line["network"], line["batch"]


# What tells a row from the others of a run.
KEYS = {"train_bench": network_key, "infer_bench": infer_key, "decode_bench": network_key, "op_bench": op_key,
        "factored_bench": factored_key, "linalg_bench": linalg_key, "sparse_bench": sparse_key, "attention_bench": attention_key,
        "loader_bench": loader_key, "outlet_bench": outlet_key}


@functools.cache
def results(root, program):
    return read_lines(root / "bench" / "results" / f"{program}.jsonl")


# Which lines the tables show.
def last_run(lines):
    return same(lines, "date") if lines else []


def by_rival(lines):
    """The lines against our own, and those against libraries: a run may be without the latter."""
    return [line for line in lines if "library" not in line.value], [line for line in lines if "library" in line.value]


def last_runs(lines):
    """The last run against our own, and the last against libraries."""
    return tuple(map(last_run, by_rival(lines)))


def newest_groups(lines, program):
    """The last line of each row, those of like conditions and the same version of PyTorch together."""
    newest = {}
    for line in lines:
        newest.pop(KEYS[program](line), None)
        newest[KEYS[program](line)] = line
    groups = {}
    for line in newest.values():
        version = line["torch"]["version"] if "torch" in line.value else ""
        groups.setdefault((version, *conditions_of(line)), []).append(line)
    return list(groups.values())


def train_runs(lines):
    """The lines of each network, precision and version of PyTorch, in the order of their first lines."""
    groups = {}
    for line in lines:
        if compressed(line):
            continue
        groups.setdefault(network_key(line), []).append(line)
    return [same(group) for group in groups.values()]


def infer_runs(lines):
    """For each version of PyTorch the last line of each network and batch."""
    groups = []
    for version in dict.fromkeys(line["torch"]["version"] for line in lines):
        runs = same([line for line in lines if line["torch"]["version"] == version])
        groups.append(list({(line["model"], line["batch"]): line for line in runs}.values()))
    return groups


def agreement(runs):
    """How far apart the earlier and the later half of a row's lines are, by the median of what counts of their ratios, and whether
    that is near enough."""
    if len(runs) % 2 == 1:
        return f"{len(runs)} line{'' if len(runs) == 1 else 's'}: needs two calls of scripts/bench", False
    before, after = (median(counted(line["ratio"]) for line in half)
                     for half in (runs[: len(runs) // 2], runs[len(runs) // 2 :]))
    difference = abs(after - before) / before
    text = f"{before:.2f}, {after:.2f}: {100 * difference:.1f} %"
    if difference <= AGREEMENT:
        return text, True
    p10, p90 = (median(line["ratio"][key] for line in runs) for key in ("p10", "p90"))
    inside = p10 <= min(before, after) and max(before, after) <= p90
    return f"{text} APART, {'within' if inside else 'beyond'} the rounds' p10 to p90, {p10:.2f} to {p90:.2f}", False


def compare(root):
    """Prints, for each row of the last commit, how far its lines' halves are apart. True when all rows agree."""
    agree = True
    for program, key_of in KEYS.items():
        lines = results(root, program)
        rows = {}
        for line in lines:
            rows.setdefault(key_of(line), []).append(line)
        for key, runs in rows.items():
            if runs[-1]["commit"] != lines[-1]["commit"]:
                continue
            text, near = agreement(same(runs))
            agree = agree and near
            print(f"{' '.join([program, *map(str, key)])}: {text}")
    return agree
