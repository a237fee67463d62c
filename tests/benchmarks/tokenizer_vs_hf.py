#!/usr/bin/env python3
"""Compares the tokenizer of a GGUF file with Hugging Face's `tokenizers` on one
thread, over a megabyte of mixed text and the worst megabytes; checks that both
give the same ids, and prints how many times faster this one is by CPU time.

  tokenizer_vs_hf.py --binary build/release/bin/tokenizer_speed \
    --model models/SmolLM2-135M-Instruct.Q4_1.gguf

Needs the packages tokenizers and gguf. The vocabulary must be byte-level BPE in
the manner of SmolLM.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

import gguf
from tokenizers import (AddedToken, Tokenizer, decoders, models,
                        pre_tokenizers)

_CASES = pathlib.Path(__file__).resolve().parent.parent / "data" / "cases"
_MEGABYTE = 1 << 20


def reference(path):
    fields = gguf.GGUFReader(path).fields
    strings = lambda key: [bytes(fields[key].parts[i]).decode()
                           for i in fields[key].data]
    tokens = strings("tokenizer.ggml.tokens")
    merges = [tuple(m.split(" ")) for m in strings("tokenizer.ggml.merges")]
    kinds = [int(fields["tokenizer.ggml.token_type"].parts[i][0])
             for i in fields["tokenizer.ggml.token_type"].data]
    tokenizer = Tokenizer(models.BPE({t: i for i, t in enumerate(tokens)},
                                     merges))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True),
         pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(t, special=True, normalized=False)
         for t, kind in zip(tokens, kinds) if kind == 3])
    return tokenizer


def texts_of_cases():
    texts = []
    for name, keys in (("scores", ["text"]), ("generation", ["prompt", "text"]),
                       ("tokenizer", ["text"]), ("chat_template", ["text"])):
        for line in open(_CASES / f"{name}.jsonl"):
            row = json.loads(line)
            texts += [row[k] for k in keys if isinstance(row.get(k), str)]
    return texts


def mixed():
    """The texts of the cases in random order, words of prose shuffled, so that
    no cache sees the same stretch again and again."""
    draw = random.Random(7)
    texts = texts_of_cases()
    out, size = [], 0
    while size < _MEGABYTE:
        text = draw.choice(texts)
        if draw.random() < 0.7:
            words = text.split(" ")
            draw.shuffle(words)
            text = " ".join(words)
        out.append(text)
        size += len(text.encode()) + 1
    return "\n".join(out)


def worst():
    count = lambda unit: _MEGABYTE // len(unit.encode())
    return {name: unit * count(unit) for name, unit in
            (("one letter", "a"), ("spaces", " "), ("emoji", "\U0001f600"),
             ("digits", "7"), ("line feeds", "\n"), ("dots", "."))}


def fold(ids):
    state = 0xCBF29CE484222325
    for value in ids:
        state = ((state ^ value) * 0x100000001B3) & ((1 << 64) - 1)
    return f"{state:016x}"


def best_of(rounds, call):
    best, result = float("inf"), None
    for _ in range(rounds):
        begin = time.process_time()
        result = call()
        best = min(best, time.process_time() - begin)
    return best, result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    tokenizer = reference(arguments.model)
    texts = {"mixed text": mixed(), **worst()}
    wrong = False
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i, text in enumerate(texts.values()):
            paths.append(pathlib.Path(folder) / str(i))
            paths[-1].write_bytes(text.encode())
        done = subprocess.run(
            [arguments.binary, arguments.model, str(arguments.rounds), *paths],
            stdout=subprocess.PIPE, text=True, check=True)
        ours = [json.loads(line) for line in done.stdout.splitlines()]
    print(f"{'text':12} {'tokens':>9} {'here':>12} {'tokenizers':>12} "
          f"{'ratio':>7}")
    for (name, text), mine in zip(texts.items(), ours):
        # The faster of the library's two ways for one text.
        seconds, encoding = min(
            (best_of(arguments.rounds, call) for call in (
                lambda: tokenizer.encode(text, add_special_tokens=False),
                lambda: tokenizer.encode_batch_fast(
                    [text], add_special_tokens=False)[0])),
            key=lambda timed: timed[0])
        same = fold(encoding.ids) == mine["hash"]
        wrong = wrong or not same
        rate = lambda s: f"{mine['bytes'] / s / 1e6:.2f} MB/s"
        print(f"{name:12} {mine['tokens']:9} {rate(mine['seconds']):>12} "
              f"{rate(seconds):>12} {seconds / mine['seconds']:6.1f}x"
              f"{'' if same else '  ids differ'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
