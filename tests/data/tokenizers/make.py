#!/usr/bin/env python3
"""Trains a small tokenizer in the manner of each model family and writes what
Hugging Face's `tokenizers` makes of 10,000 seeded strings.

usage: make.py  (Python 3.11; tokenizers 0.23, sentencepiece 0.2, gguf, numpy)

Writes beside itself, for each family NAME:
  NAME.tokenizer.json  as a model folder has it
  NAME.gguf            the same vocabulary as GGUF metadata, where a file of the
                       family would have it
  NAME.ids.json        ids of the first 40 strings, hashes of groups of 25
and fragments.json, from which C++ makes the same strings (README.md).
"""
import collections
import io
import json
import os
import pathlib

os.environ["TOKENIZERS_PARALLELISM"] = "false"

import gguf
import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                        normalizers, pre_tokenizers, processors, trainers)

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE.parent / "cases"
STRINGS = 10000
GROUP = 25
PLAIN_GROUP = 100
FULL = 40
SIZE = 560  # tokens of a byte-level vocabulary, without the added ones
MASK = (1 << 64) - 1

FRAGMENTS = [
    " ", "  ", "   ", "     ", "\n", "\n\n", "\r\n", "\t", " \n", "\n ", "\t\t",
    "\u00a0", "\u2003", "\u3000", "\u2028", "\u0085", "\u200b", "\u200d",
    "\ufeff", "\u0001", "\u007f",
    "the", " the", "The", " and", " of", "ing", "ed", " was", " a", "I", " I'm",
    "'s", "'S", "'t", "'re", "'VE", "'ll", "'d", "'", "''", "don't", "DON'T",
    "hello", " Hello", "WORLD", "camelCase", "HTTPServer", "snake_case", "x",
    " truth", "universally", " acknowledged", "wonderland", "Alice", " whale",
    "0", "1", "7", "42", "123", "1234", "2024", "1000000", "3.14", "1,000",
    " 5", "x1", "v2.0", "\u0661\u0662", "\u00bd", "\u2167", "\u00b2",
    ".", ",", "!", "?", "...", "!!", "?!", ":", ";", "-", "--", "(", ")", "[",
    "]", "{", "}", "<", ">", "/", "//", "\\", "|", "_", "__", "#", "##", "@",
    "$", "%", "^", "&", "*", "**", "+", "=", "==", "~", "`", "```", "\"",
    " (", ") ", ". ", ", ", "!\n", ";\n", "{\n", "}\n\n", "/\n", " = ", " == ",
    "for (int i = 0; i < n; ++i) {", "def f(x):\n    return x", "import os\n",
    "</div>", "&amp;", "http://example.com/a?b=c", "a@b.org",
    "\u00e9", "e\u0301", "\u00fc", "u\u0308", "\u00df", "\u1e9e", "\u00f1",
    "na\u00efve", "caf\u00e9", "\u0130", "\u0131", "\u01c5", "\u02b0", "\ufb01",
    "\u212b", "\u2126", "\uac00", "\u1100\u1161", "\u0915\u093f", "\u0e01\u0e33",
    "\u4e2d\u6587", "\u6f22\u5b57", "\u3042\u308a", "\u30ab\u30bf",
    "\ud55c\uad6d", "\u041f\u0440\u0438\u0432\u0435\u0442", "\u03b1\u03b2\u03b3",
    "\u0645\u0631\u062d\u0628\u0627", "\u05e9\u05dc\u05d5\u05dd",
    "\u0928\u092e\u0938\u094d\u0924\u0947", "\uff01", "\uff21", "\u3002",
    "\U0001f600", "\U0001f44d\U0001f3fd", "\u2764\ufe0f",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea",
    "\U00010400", "\u20ac", "\u2014", "\u201c", "\u201d", "\u2026", "\u2581",
    "\u2581the",
]

# First and last code point of ranges from which single characters come.
RANGES = [[0x20, 0x7E], [0xA1, 0x24F], [0x391, 0x3A1], [0x410, 0x44F],
          [0x5D0, 0x5EA], [0x905, 0x939], [0xE01, 0xE3A], [0x1E00, 0x1E95],
          [0x2010, 0x2027], [0x2190, 0x21FF], [0x3041, 0x3096],
          [0x4E00, 0x9FA5], [0xAC00, 0xD7A3], [0xFF01, 0xFF5E],
          [0x1F300, 0x1F64F]]


class Draws:
    """A linear congruential generator that C++ has, too."""

    def __init__(self, seed):
        self.state = (seed * 0x9E3779B97F4A7C15 + 1) & MASK

    def below(self, bound):
        self.state = (self.state * 6364136223846793005 +
                      1442695040888963407) & MASK
        return (self.state >> 33) % bound


def string(index, specials):
    draws = Draws(index)
    text = ""
    for _ in range(1 + draws.below(14)):
        kind = draws.below(16)
        if kind == 0 and specials:
            text += specials[draws.below(len(specials))]
        elif kind <= 2:
            first, last = RANGES[draws.below(len(RANGES))]
            text += chr(first + draws.below(last - first + 1))
        else:
            fragment = FRAGMENTS[draws.below(len(FRAGMENTS))]
            text += fragment * (1 + (draws.below(4) if kind == 3 else 0))
    return text


def fold(state, ids):
    """FNV-1a over the little-endian 32-bit ids and their number."""
    for value in [len(ids)] + ids:
        for shift in (0, 8, 16, 24):
            state = ((state ^ (value >> shift & 255)) * 0x100000001B3) & MASK
    return state


def corpus():
    texts = []
    for name in ("tokenizer", "scores", "generation"):
        for line in open(CASES / f"{name}.jsonl"):
            row = json.loads(line)
            texts += [row[key] for key in ("text", "prompt")
                      if isinstance(row.get(key), str)]
    texts += [string(1_000_000 + i, []) for i in range(3000)]
    # No sentence of a corpus is longer than a trainer takes.
    return [t for t in texts if "\0" not in t and len(t.encode()) < 4000]


CL100K = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = CL100K.replace(r"\p{N}{1,3}", r"\p{N}")
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
TEKKEN = O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace(
    r"\p{N}{1,3}", r"\p{N}")
DEEPSEEK = (r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"
            "|[^\r\n" r"\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+"
            "[\r\n]*" r"|\s*" "[\r\n]+" r"|\s+(?!\S)|\s+").replace('\\"', '"')
# The code points are spelt as escapes: some have canonical equivalents.
CASED = (
    "A-Za-z\u00b5\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u01ba\u01bc-\u01bf"
    "\u01c4-\u0293\u0295-\u02af\u0370-\u0373\u0376\u0377\u037b-\u037d\u037f"
    "\u0386\u0388-\u038a\u038c\u038e-\u03a1\u03a3-\u03f5\u03f7-\u0481"
    "\u048a-\u052f\u0531-\u0556\u10a0-\u10c5\u13a0-\u13f5\u13f8-\u13fd"
    "\u1c90-\u1cba\u1cbd-\u1cbf\u1d00-\u1d2b\u1d6b-\u1d77\u1d79-\u1d9a"
    "\u1e00-\u1f15\u1f18-\u1f1d\u1f20-\u1f45\u1f48-\u1f4d\u1f50-\u1f57\u1f59"
    "\u1f5b\u1f5d\u1f5f-\u1f7d\u1f80-\u1fb4\u1fb6-\u1fbc\u1fbe\u1fc2-\u1fc4"
    "\u1fc6-\u1fcc\u1fd0-\u1fd3\u1fd6-\u1fdb\u1fe0-\u1fec\u1ff2-\u1ff4"
    "\u1ff6-\u1ffc\u2102\u2107\u210a-\u2113\u2115\u2119-\u211d\u2124\u2126"
    "\u2128\u212a-\u212d\u212f-\u2134\u2139\u213c-\u213f\u2145-\u2149\u214e"
    "\u2183\u2184\u2c00-\u2c7b\u2c7e-\u2ce4\u2ceb-\u2cee\u2cf2\u2cf3"
    "\ua640-\ua66d\ua680-\ua69b\ua722-\ua76f\ua771-\ua787\ua78b-\ua78e"
    "\uab70-\uabbf\ufb00-\ufb06\ufb13-\ufb17\uff21-\uff3a\uff41-\uff5a"
    "\U00010400-\U0001044f\U000104b0-\U000104d3\U000104d8-\U000104fb"
    "\U00010c80-\U00010cb2\U00010cc0-\U00010cf2\U000118a0-\U000118df"
    "\U0001e900-\U0001e943")


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(Regex(pattern), behavior, invert)


def sequence(*steps):
    return pre_tokenizers.Sequence(list(steps))


RAW = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)


def byte_level(pre, added, normalizer=None, ignore_merges=False, bos=None):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(corpus(), trainers.BpeTrainer(
        vocab_size=SIZE, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.add_special_tokens([t for t in added if t.special])
    tokenizer.add_tokens([t for t in added if not t.special])
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, tokenizer.token_to_id(bos))])
    return tokenizer


def special(*texts, **options):
    return [AddedToken(t, special=True, normalized=False, **options)
            for t in texts]


def user(*texts, **options):
    return [AddedToken(t, special=False, normalized=False, **options)
            for t in texts]


def common_corpus():
    """Without the rare characters, each of which would have to be a token."""
    texts = corpus()
    counts = collections.Counter("".join(texts))
    return ["".join(c for c in t if counts[c] >= 12) for t in texts]


def train_sentencepiece(kind, prefix, symbols):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(common_corpus()), model_writer=model, model_type=kind,
        vocab_size=800, byte_fallback=True, character_coverage=0.999,
        normalization_rule_name="identity", remove_extra_whitespaces=False,
        add_dummy_prefix=prefix, user_defined_symbols=symbols,
        split_digits=True, allow_whitespace_only_pieces=True,
        minloglevel=2, num_threads=1)
    processor = sentencepiece.SentencePieceProcessor()
    processor.LoadFromSerializedProto(model.getvalue())
    return processor


def pieces_of(processor):
    return [(processor.IdToPiece(i), processor.GetScore(i))
            for i in range(processor.GetPieceSize())]


def merges_of(pieces):
    """Every way to make a piece of two, by the score of what it makes."""
    vocabulary = {piece: i for i, (piece, _) in enumerate(pieces)}
    merges = []
    for piece, score in pieces:
        local = [(piece[:i], piece[i:]) for i in range(1, len(piece))
                 if piece[:i] in vocabulary and piece[i:] in vocabulary]
        local.sort(key=lambda m: (vocabulary[m[0]], vocabulary[m[1]]))
        merges += [(left, right, score) for left, right in local]
    merges.sort(key=lambda m: m[2], reverse=True)
    return vocabulary, [(left, right) for left, right, _ in merges]


def sentencepiece_bpe(prefix, added, normalizer, pre=None, symbols=()):
    processor = train_sentencepiece("bpe", prefix, list(symbols))
    vocabulary, merges = merges_of(pieces_of(processor))
    tokenizer = Tokenizer(models.BPE(
        vocabulary, merges, unk_token="<unk>", fuse_unk=True,
        byte_fallback=True))
    if normalizer:
        tokenizer.normalizer = normalizer
    if pre:
        tokenizer.pre_tokenizer = pre
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(),
             decoders.Fuse()]
    if prefix:
        steps.append(decoders.Strip(" ", 1, 0))
    tokenizer.decoder = decoders.Sequence(steps)
    named = [t.content for t in added]
    tokenizer.add_special_tokens(special(
        *(t for t in ("<unk>", "<s>", "</s>") if t not in named)))
    tokenizer.add_special_tokens([t for t in added if t.special])
    tokenizer.add_tokens([t for t in added if not t.special])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)])
    return tokenizer, processor


def unigram():
    processor = train_sentencepiece("unigram", True, [])
    tokenizer = Tokenizer(models.Unigram(pieces_of(processor), 0, True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace()])
    tokenizer.add_special_tokens(special("<unk>", "<s>", "</s>"))
    tokenizer.add_tokens([AddedToken("<mask>", lstrip=True, normalized=True),
                          AddedToken("word", single_word=True,
                                     normalized=False)])
    return tokenizer


TYPES = gguf.TokenType


def write_gguf(path, tokenizer, pre=None, processor=None, add_prefix=True,
               architecture="llama"):
    data = json.loads(tokenizer.to_str())
    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    tokens = [None] * len(vocabulary)
    for text, token in vocabulary.items():
        tokens[token] = text
    types = [TYPES.NORMAL] * len(tokens)
    scores = [-1000.0] * len(tokens)
    if processor:
        for i in range(processor.GetPieceSize()):
            scores[i] = processor.GetScore(i)
            if processor.IsByte(i):
                types[i] = TYPES.BYTE
    for added in data["added_tokens"]:
        types[added["id"]] = (TYPES.CONTROL if added["special"]
                              else TYPES.USER_DEFINED)
    if processor:
        types[0] = TYPES.UNKNOWN
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_tokenizer_model("llama" if processor else "gpt2")
    if pre:
        writer.add_tokenizer_pre(pre)
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    if processor:
        writer.add_token_scores(scores)
        writer.add_add_space_prefix(add_prefix)
    else:
        merges = data["model"]["merges"]
        writer.add_token_merges(
            [m if isinstance(m, str) else " ".join(m) for m in merges])
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write(name, tokenizer, **gguf_options):
    tokenizer.save(str(HERE / f"{name}.tokenizer.json"), pretty=False)
    specials = [t["content"] for t in
                json.loads(tokenizer.to_str())["added_tokens"]]
    full, hashes, state = [], [], 0xCBF29CE484222325
    for i in range(STRINGS):
        ids = tokenizer.encode(string(i, specials),
                               add_special_tokens=False).ids
        if i < FULL:
            full.append(ids)
        state = fold(state, ids)
        if i % GROUP == GROUP - 1:
            hashes.append(f"{state:016x}")
            state = 0xCBF29CE484222325
    # The same with special tokens left as text. A unigram model of the library
    # finds those that it has itself all the same (README.md).
    tokenizer.encode_special_tokens = True
    plain_specials = specials
    if isinstance(tokenizer.model, models.Unigram):
        plain_specials = specials[3:]
    plain, state = [], 0xCBF29CE484222325
    for i in range(STRINGS):
        state = fold(state, tokenizer.encode(string(i, plain_specials),
                                             add_special_tokens=False).ids)
        if i % PLAIN_GROUP == PLAIN_GROUP - 1:
            plain.append(f"{state:016x}")
            state = 0xCBF29CE484222325
    tokenizer.encode_special_tokens = False
    with open(HERE / f"{name}.ids.json", "w") as out:
        json.dump({"specials": specials, "first": full, "hashes": hashes,
                   "plain_specials": plain_specials, "plain_hashes": plain}, out,
                  separators=(",", ":"))
        out.write("\n")
    if gguf_options:
        write_gguf(HERE / f"{name}.gguf", tokenizer, **gguf_options)
    print(name, tokenizer.get_vocab_size())


def byte_level_families():
    chat = special("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    write("gpt2", byte_level(GPT2, special("<|endoftext|>")), pre="gpt-2")
    write("olmo", byte_level(GPT2, special("<|endoftext|>"),
                             normalizers.NFC()), pre="olmo")
    write("smollm", byte_level(
        sequence(pre_tokenizers.Digits(individual_digits=True), GPT2), chat),
        pre="smollm")
    write("granite", byte_level(
        sequence(pre_tokenizers.Digits(individual_digits=True), GPT2),
        special("<|end_of_text|>", "<|start_of_role|>")), pre="refact")
    write("llama3", byte_level(
        sequence(split(CL100K), RAW),
        special("<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>"),
        ignore_merges=True, bos="<|begin_of_text|>"), pre="llama-bpe")
    write("qwen2", byte_level(sequence(split(QWEN2), RAW),
                              chat + user("<tool_call>", "<think>"),
                              normalizers.NFC()), pre="qwen2")
    write("olmo2", byte_level(
        sequence(split(CL100K, "removed", True), RAW),
        special("<|endoftext|>") + user("|||IP_ADDRESS|||")), pre="dbrx")
    write("tekken", byte_level(sequence(split(TEKKEN), RAW),
                               special("<s>", "</s>", "[INST]", "[/INST]"),
                               ignore_merges=True), pre="tekken")
    write("gpt4o", byte_level(sequence(split(O200K), RAW),
                              special("<|endoftext|>")), pre="gpt-4o")
    write("deepseek_v2", byte_level(
        sequence(split("[\r\n]"), split(r"\s?[" + CASED + "]+"),
                 split(r"\s?[!-/:-~" "\uff01-\uff0f\uff1a-\uff5e\u2018-\u201f"
                       "\u3000-\u3002]+"),
                 split(r"\s+$"),
                 split("[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"),
                 pre_tokenizers.Digits(individual_digits=True), RAW),
        special("<\uff5cbegin\u2581of\u2581sentence\uff5c>",
                "<\uff5cend\u2581of\u2581sentence\uff5c>")),
        pre="deepseek-llm")
    write("deepseek_v3", byte_level(
        sequence(split(r"\p{N}{1,3}"),
                 split("[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"),
                 split(DEEPSEEK), RAW),
        special("<\uff5cbegin\u2581of\u2581sentence\uff5c>",
                "<\uff5cend\u2581of\u2581sentence\uff5c>") +
        user("<think>", "</think>")), pre="deepseek-v3")


def sentencepiece_families():
    escape = normalizers.Replace(" ", "\u2581")
    legacy = normalizers.Sequence([normalizers.Prepend("\u2581"), escape])
    tokenizer, processor = sentencepiece_bpe(True, [], legacy)
    write("llama2", tokenizer, processor=processor)
    tokenizer, processor = sentencepiece_bpe(
        True, special("[INST]", "[/INST]"), None,
        pre_tokenizers.Metaspace(prepend_scheme="first", split=False))
    write("mistral", tokenizer)
    tokenizer, processor = sentencepiece_bpe(
        True, special("</s>", "<|end|>", "<|user|>", "<|assistant|>",
                      rstrip=True),
        legacy)
    write("phi3", tokenizer, processor=processor, architecture="phi3")
    tokenizer, processor = sentencepiece_bpe(
        False, special("<start_of_turn>", "<end_of_turn>") +
        user("\n\n", "\t\t"), escape,
        pre_tokenizers.Split(" ", "merged_with_previous"))
    write("gemma", tokenizer, processor=processor, add_prefix=False)
    write("unigram", unigram())


def main():
    with open(HERE / "fragments.json", "w") as out:
        json.dump({"fragments": FRAGMENTS, "ranges": RANGES,
                   "strings": STRINGS, "group": GROUP,
                   "plain_group": PLAIN_GROUP}, out,
                  separators=(",", ":"))
        out.write("\n")
    byte_level_families()
    sentencepiece_families()


if __name__ == "__main__":
    main()
