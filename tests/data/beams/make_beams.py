"""Makes cases.jsonl: beam searches by transformers' generate over tiny random
models, with what the models said of every prefix that was looked at.

Usage: python make_beams.py (needs torch and transformers)."""

import json
import pathlib

import torch
import transformers

CASES = 24
VOCABULARY = 12
LENGTH = 8
EOS = 0
PROMPT = [5, 3, 7, 2]


def make_model(seed):
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=32,
        num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=2,
        max_position_embeddings=64, initializer_range=0.8)
    return transformers.LlamaForCausalLM(config).eval()


def make_case(seed):
    model = make_model(seed)
    width = 2 + seed % 3
    penalty = (0.0, 0.6, 1.0, 2.0)[seed // 3 % 4]
    out = model.generate(
        torch.tensor([PROMPT]), num_beams=width, num_return_sequences=width,
        max_new_tokens=LENGTH, do_sample=False, early_stopping=False,
        length_penalty=penalty, eos_token_id=EOS, pad_token_id=EOS,
        return_dict_in_generate=True, output_scores=True)
    answers = []
    for row, score in zip(out.sequences.tolist(),
                          out.sequences_scores.tolist()):
        tokens = row[len(PROMPT):]
        if EOS in tokens:
            tokens = tokens[:tokens.index(EOS) + 1]
        answers.append({'score': score, 'tokens': tokens})

    # Every prefix that is looked at: the best of each length without an end.
    model_says = []
    level = [(0.0, [])]
    for _ in range(LENGTH):
        longer = []
        for total, tokens in level:
            with torch.no_grad():
                logits = model(torch.tensor([PROMPT + tokens])).logits[0, -1]
            logprobs = [round(p, 6) for p in torch.log_softmax(
                logits.float(), -1).tolist()]
            model_says.append({'prefix': tokens, 'logprobs': logprobs})
            longer += [(total + p, tokens + [i])
                       for i, p in enumerate(logprobs) if i != EOS]
        level = sorted(longer, key=lambda item: -item[0])[:width]
    return {'width': width, 'length_penalty': penalty, 'length': LENGTH,
            'model': model_says, 'answers': answers}


def main():
    path = pathlib.Path(__file__).parent / 'cases.jsonl'
    with path.open('w', encoding='ascii') as file:
        for seed in range(CASES):
            file.write(json.dumps(make_case(seed)) + '\n')


if __name__ == '__main__':
    main()
