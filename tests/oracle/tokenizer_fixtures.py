#!/usr/bin/env python3
"""Prints tests/oracle/tokenizers.json: tokens of small texts by Hugging Face's tokenizers and by SentencePiece, with vocabularies
trained on one paragraph, for tests/train/data/text/tokenizer_oracle_test.cpp.

Usage: tests/oracle/tokenizer_fixtures.py > tests/oracle/tokenizers.json
       in a virtual environment: pip install tokenizers==0.23.3 sentencepiece==0.2.3

SentencePiece's models are in base64; each line of a text is encoded with its line break. Where two ways to cut a line score the
same, versions of SentencePiece choose differently: the text has null in place of ids.
"""
import base64
import io
import json
import random

import sentencepiece
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

PARAGRAPH = """The quick brown fox jumps over the lazy dog; it's 1984, and they've seen 3.14159 of it. She'll say he'd rather not, we're
sure. Tokenizers cut words into pieces: token, tokens, tokenize, tokenizer, tokenization. The pieces' sizes don't matter.
Élan, naïve café, Ångström, über, señor, façade. Привет, мир! 你好，世界。 こんにちは世界。 안녕하세요. 12345 67890 100,000.
for (int i = 0; i < n; ++i) { sum += x[i] * y[i]; }  // a loop, as in 2024
"""

TEXTS = [
    "",
    " ",
    "\n",
    "a",
    "  two blanks  between   words ",
    "\n\nparagraphs\n\n\nand lines\r\nof Windows\ttabs\t\tmore \n x",
    "it's they've he'd she'll we're I'm don't 'tis 's'S'RE rock'n'roll ''s '",
    "The tokenizer tokenizes tokens in 2024: 3.14159, 100,000 and 0x1F.",
    "for (int i=0;i<n;++i){sum+=x[i]*y[i];}//loop $5 + 3^2 = ~14 `q` |p| {a} <b> @c #d %e &f",
    "Élan naïve café Ångström ÜBER señor FAÇADE œuvre ŒUVRE ǅ İstanbul ıI Straße ẞ",
    "e\u0301 A\u030a o\u0308\u0323 decomposed \u1e69 s\u0323\u0307 s\u0307\u0323",
    "Привет, мир! ПРИВЕТ МИР Ёлка ёж й",
    "你好，世界。混合English和中文123 㐀 豈 \U00020000",
    "こんにちは世界。カタカナ ガギグ ﾊﾝｶｸ",
    "안녕하세요 한국어",
    "emoji 😀😃 👩‍👩‍👧 🇩🇪 ❤️ ☃ a😀b",
    "² ³ ¼ Ⅷ ٣ ४ ⑨ x² 1²3",
    "ΑΒΓ Σίσυφος ΣΑΣ ΟΔΟΣ",
    "no\u00a0break em\u2003space \u3000wide\u2028line\u0085next zero\u200bwidth soft\u00adhyphen \ufeffbom \u180e",
    "\x00nul \x01\x02 control\x7f \x1b[0m \ufffd",
    "— “quotes” ‘single’ … • § ¶ † £ € ¥ © ™ ° ± × ÷ ≤ ∞ « » ¿ ¡",
    "สวัสดี नमस्ते שלום مرحبا הָיָה أَهْلًا",
    "supercalifragilisticexpialidocious" * 2,
    "x" * 100,
    "y" * 101,
    "a" * 257 + " " * 65 + "b",
    "\U0001d54f\U0001d550 \U00010400\U00010428 \U0001f1e6",
]


def random_texts(count):
    """Mixtures of everything, blanks and apostrophes above all."""
    characters = random.Random(7)
    pool = sorted(set("".join(TEXTS) + PARAGRAPH)) + list(" '\n\t .,") * 12
    return ["".join(characters.choices(pool, k=characters.randint(1, 60))) for _ in range(count)]


def bpe(texts):
    trained = tokenizers.Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trained.train_from_iterator([PARAGRAPH] * 2, trainers.BpeTrainer(
        vocab_size=460, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), special_tokens=["<|endoftext|>", "<mask>"],
        show_progress=False))
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    plain = tokenizers.Tokenizer(models.BPE(model["vocab"], merges))
    plain.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    return {"vocab": model["vocab"], "merges": [" ".join(merge) for merge in merges],
            "ids": [plain.encode(text).ids for text in texts]}


def wordpiece(texts):
    trained = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer(lowercase=False)
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trained.train_from_iterator([PARAGRAPH, PARAGRAPH.lower(), "elan naive cafe angstrom uber senor facade aou"] * 2,
                                trainers.WordPieceTrainer(vocab_size=400, show_progress=False,
                                                          special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]))
    vocab = trained.get_vocab()
    answer = {"vocab": sorted(vocab, key=vocab.get)}
    for name, lowercase in (("lower", True), ("cased", False)):
        plain = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
        plain.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
        plain.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        plain.decoder = decoders.WordPiece(cleanup=False)
        answer[name] = [plain.encode(text).ids for text in texts]
    answer["text"] = plain.decode(answer["cased"][7])
    return answer


def sentencepiece_model(texts, **options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(PARAGRAPH.splitlines() * 3), model_writer=model, normalization_rule_name="identity",
        control_symbols=["<mask>"], minloglevel=2, hard_vocab_limit=False, **options)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    ids = []
    for text in texts:
        lines = [line + "\n" for line in text.split("\n")]
        lines[-1] = lines[-1][:-1]
        tied = options["model_type"] == "unigram" and any(is_tied(processor, line) for line in lines)
        ids.append(None if tied else [token for line in lines if line for token in processor.encode(line)])
    some = processor.encode(texts[7])
    return {"model": base64.b64encode(model.getvalue()).decode(), "ids": ids, "decoded": processor.decode(some), "decoded_ids": some}


def is_tied(processor, line):
    scores = [sum(processor.get_score(token) for token in ids) for ids in processor.nbest_encode(line, nbest_size=2)]
    return len(scores) > 1 and abs(scores[0] - scores[1]) < 1e-3


def main():
    texts = TEXTS + [PARAGRAPH] + random_texts(40)
    clean = [text for text in texts if "\0" not in text]  # SentencePiece's Python reads texts of C
    print(json.dumps({
        "made_with": {"tokenizers": tokenizers.__version__, "sentencepiece": sentencepiece.__version__},
        "texts": texts,
        "clean": clean,
        "bpe": bpe(texts),
        "wordpiece": wordpiece(texts),
        "sentencepiece": {
            "bpe": sentencepiece_model(clean, model_type="bpe", vocab_size=460, byte_fallback=True,
                                       remove_extra_whitespaces=False, character_coverage=0.98),
            "unigram": sentencepiece_model(clean, model_type="unigram", vocab_size=250, character_coverage=0.98),
        },
    }, ensure_ascii=True, separators=(",", ":")))


if __name__ == "__main__":
    main()
