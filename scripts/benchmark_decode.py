"""The tables of decode_bench, and of compressed networks, whose training steps train_bench times. Used by benchmark_tables.py."""
from benchmark_markdown import Table, milliseconds, paragraph, spread, table
from benchmark_results import beside_alone, compressed, conditions, failures, newest_groups, reached, torch_way, verdict


def decode_tables(lines):
    """A table for each set of conditions under which rows of either rival were last measured."""
    dense = [line for line in lines if not compressed(line)]
    networks = [line for line in lines if compressed(line)]
    return ([torch_table(group) for group in newest_groups(dense, "decode_bench")] +
            [compressed_table(group, "decode_bench") for group in newest_groups(networks, "decode_bench")])


def decode_case(line):
    return f"{line['model']}, {line['precision']}, {line['shape']}, batch {line['batch']}"


def torch_table(lines):
    rows = [[decode_case(line), milliseconds(line["tessera_ms"]), f"{line['tokens_per_second']:.0f}", milliseconds(line["torch_ms"]),
             spread(line["ratio"]), verdict(line), reached(line.value, "stream_ratio", "stream_target"),
             reached(line.value, "f32_ratio", "f32_target"), torch_way(line, line["torch_settings"]["mode"])] for line in lines]
    text = (f"A token behind another, as in generation, against PyTorch {lines[-1]['torch']['version']} with a static cache, in the "
            "fastest of its ways: eager or compiled with constant weights, malloc, instruction set, what waiting threads do. The "
            "weights are the same and the scores agree. \"Of a stream\" is the time of a pass that only reads as many bytes as the "
            "weights have, over ours; the next column is our forward in f32 over this one. " + failures(lines) +
            conditions(lines, "decode_bench"))
    head = ["network", "ms a token", "tokens/s", "PyTorch ms", "PyTorch / tessera", "target", "of a stream", "f32 / bf16",
            "PyTorch's way"]
    return Table(f"decoding, PyTorch {lines[-1]['torch']['version']}", lines,
                 paragraph(text) + table(head, rows) + beside_alone(lines, decode_case))


def compressed_case(line):
    return f"{line['model']}, MLPs in {line['format']}, {line['phase']}, {line['shape']}, batch {line['batch']}"


def compressed_table(lines, program):
    rows = [[compressed_case(line), milliseconds(line["rival"]["ms"]), milliseconds(line["factored"]["ms"]), spread(line["ratio"]),
             verdict(line)] for line in lines]
    phases = {"training": "a whole step with its optimiser", "decoding": "one new token"}
    text = (f"A network with compressed MLPs against ours dense, {phases[lines[-1]['phase']]}. " + conditions(lines, program))
    return Table(f"compressed networks, {lines[-1]['phase']}", lines, paragraph(text) +
                 table(["network", "dense ms", "compressed ms", "dense / compressed", "target"], rows) +
                 beside_alone(lines, compressed_case))
