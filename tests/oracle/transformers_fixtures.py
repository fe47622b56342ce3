#!/usr/bin/env python3
"""transformers' side of the tests of Hugging Face weights: tiny networks, and what they make of inputs.

transformers_fixtures.py write       writes tests/oracle/transformers/<gpt2|bert|vit|llama>/: model.safetensors and config.json as
                                     save_pretrained writes them, and samples.safetensors: the inputs and `logits`
transformers_fixtures.py check DIR   loads model.safetensors and config.json of DIR as a user would, runs DIR/samples.safetensors and
                                     writes DIR/logits.safetensors

In a virtual environment: pip install torch transformers==5.24.0 (tried: torch 2.15.0). Weights are drawn by NumPy from the names of
the tensors, and are numbers of f16. They are scaled so that logits exceed 1, and that another GELU or another epsilon moves them by
more than VISIBLE: `write` fails where one does not. Images are NHWC; a key_mask has 0 where attention looks away.
"""
import json
import pathlib
import sys
import zlib

import numpy
import torch
import transformers
from safetensors.torch import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parent / "transformers"
VISIBLE = 2e-3
VOCABULARY = 61
POSITIONS = 24


def generator(*names):
    return numpy.random.default_rng([zlib.crc32(name.encode()) for name in names])


# (end of the name, mean, deviation); the first that fits. Small embeddings make the first norm's epsilon count, biases near -2 the
# form of GELU: there the two differ by a hundredth of their value.
SCALES = {
    "gpt2": [("wte.weight", 0, 0.03), ("wpe.weight", 0, 0.02), ("ln_f.weight", 9, 1), ("c_fc.bias", -2, 0.3), ("c_fc.weight", 0, 0.15),
             ("mlp.c_proj.weight", 0, 0.5), ("c_attn.weight", 0, 0.3)],
    "bert": [("predictions.transform.dense.weight", 0, 0.003), ("predictions.transform.dense.bias", 0, 0.003),
             ("intermediate.dense.bias", -2, 0.3), ("intermediate.dense.weight", 0, 0.15), ("layer.0.output.dense.weight", 0, 0.5),
             ("layer.1.output.dense.weight", 0, 0.5), ("embeddings.weight", 0, 0.3), ("predictions.bias", 0, 0.5)],
    "vit": [("cls_token", 0, 0.01), ("position_embeddings", 0, 0.008), ("projection.weight", 0, 0.001), ("projection.bias", 0, 0.003),
            ("intermediate.dense.bias", -2, 0.3), ("intermediate.dense.weight", 0, 0.1), ("0.output.dense.weight", 0, 1),
            ("1.output.dense.weight", 0, 1), ("classifier.weight", 0, 1)],
    "llama": [("embed_tokens.weight", 0, 0.03), ("lm_head.weight", 0, 0.4), ("down_proj.weight", 0, 0.5)],
}
COMMON = [("orm.weight", 1, 0.2), ("ln_1.weight", 1, 0.2), ("ln_2.weight", 1, 0.2), ("layernorm_before.weight", 1, 0.2),
          ("layernorm_after.weight", 1, 0.2), ("layernorm.weight", 1, 0.2), ("bias", 0, 0.2), ("weight", 0, 0.25)]


def draw(kind, model):
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mean, deviation = next((mean, scale) for end, mean, scale in SCALES[kind] + COMMON if name.endswith(end))
            values = generator(kind, name).normal(mean, deviation, parameter.shape)
            parameter.copy_(torch.from_numpy(values.astype(numpy.float16)).float())
    return model.eval()


def config(kind, **changes):
    common = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
    text = {"vocab_size": VOCABULARY, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    if kind == "gpt2":
        return transformers.GPT2Config(n_positions=POSITIONS, n_embd=32, n_layer=2, n_head=4, **text, **changes)
    if kind == "bert":
        return transformers.BertConfig(intermediate_size=96, max_position_embeddings=POSITIONS, **common, **text, **changes)
    if kind == "vit":
        return transformers.ViTConfig(intermediate_size=96, image_size=16, patch_size=4, num_labels=7, **common, **changes)
    return transformers.LlamaConfig(intermediate_size=56, num_key_value_heads=2, max_position_embeddings=POSITIONS, **common, **text,
                                    **changes)


CLASSES = {"gpt2": transformers.GPT2LMHeadModel, "bert": transformers.BertForMaskedLM, "vit": transformers.ViTForImageClassification,
           "llama": transformers.LlamaForCausalLM}
# What a reader may get wrong, by what another network of the same names has.
WRONG = {"gpt2": [{"activation_function": "gelu"}, {"layer_norm_epsilon": 1e-6}],
         "bert": [{"hidden_act": "gelu_pytorch_tanh"}, {"layer_norm_eps": 1e-6}],
         "vit": [{"hidden_act": "gelu_pytorch_tanh"}, {"layer_norm_eps": 1e-6}],
         "llama": [{"rms_norm_eps": 1e-5}, {"hidden_act": "gelu"}]}


def samples(kind):
    rng = generator(kind, "samples")
    if kind == "vit":
        return {"image": torch.from_numpy(rng.normal(0, 1, (3, 16, 16, 3)).astype(numpy.float32))}
    lengths = [19, 11, 1] if kind == "bert" else [17, 17]
    shape = (len(lengths), lengths[0])
    drawn = {"tokens": torch.from_numpy(rng.integers(0, VOCABULARY, shape))}
    if kind == "bert":
        drawn["segments"] = torch.from_numpy(rng.integers(0, 2, shape))
        drawn["key_mask"] = (torch.arange(shape[1])[None, :] < torch.tensor(lengths)[:, None]).to(torch.uint8)
    return drawn


def logits(model, inputs):
    with torch.no_grad():
        if "image" in inputs:
            return model(pixel_values=inputs["image"].permute(0, 3, 1, 2).contiguous()).logits
        arguments = {"input_ids": inputs["tokens"]}
        if "segments" in inputs:
            arguments["token_type_ids"] = inputs["segments"]
        if "key_mask" in inputs:
            arguments["attention_mask"] = inputs["key_mask"].long()
        return model(**arguments).logits


def write(kind):
    inputs = samples(kind)
    model = draw(kind, CLASSES[kind](config(kind)))
    expected = logits(model, inputs)
    if expected.abs().max() < 1:
        raise SystemExit(f"{kind}: logits reach {expected.abs().max():.2g} only")
    for change in WRONG[kind]:
        moved = (logits(draw(kind, CLASSES[kind](config(kind, **change))), inputs) - expected).abs().max().item()
        print(f"{kind}: logits to {expected.abs().max():.2f}, with {change} moved by {moved:.2g}")
        if moved < VISIBLE:
            raise SystemExit(f"{kind}: {change} moves no logit by {VISIBLE}")
    folder = ROOT / kind
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    save_file({**inputs, "logits": expected.contiguous()}, folder / "samples.safetensors")


def check(folder):
    settings = json.loads((folder / "config.json").read_text())
    model, report = getattr(transformers, settings["architectures"][0]).from_pretrained(folder, output_loading_info=True)
    faults = {what: names for what, names in report.items() if names}
    if faults:
        raise SystemExit(f"{folder}: {faults}")
    save_file({"logits": logits(model.eval(), load_file(folder / "samples.safetensors")).contiguous()}, folder / "logits.safetensors")


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    if sys.argv[1] == "write":
        for kind in CLASSES:
            write(kind)
    else:
        check(pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
