"""Makes the folders of this directory: tiny random models of each family.

    python3 make.py [NAME...]

Prints how far the logits move when an option of a family is taken away, and
fails where a wrong reader could go unseen.
"""

import json
import pathlib
import shutil
import sys
import zlib

import gguf
import torch
import transformers
from safetensors.torch import load_file

import dense_families
import expert_families
import gguf_metadata
import gguf_tensors
import random_weights
import reference
import tiny_tokenizer

HERE = pathlib.Path(__file__).parent

FAMILIES = (dense_families.LLAMA + dense_families.OTHERS +
            expert_families.FAMILIES)

SEEN = 0.01  # by how much each option must move some logit
STEADY = 5e-5  # how far rounding may move them


def save_hugging_face(family, model, folder):
    # A copy: conversion would also round the rope's speeds.
    stored = reference.build(family, model).to(family.dtype)
    shards = {}
    if family.shard_bytes:
        shards['max_shard_size'] = family.shard_bytes
    stored.save_pretrained(folder, **shards)
    for file in folder.glob('*.safetensors'):
        file.chmod(0o644)
    tiny_tokenizer.make().save_pretrained(folder)
    if family.old_config is not None:
        config = json.loads((folder / 'config.json').read_text())
        (folder / 'config_old.json').write_text(
            json.dumps(family.old_config(config), indent=2) + '\n')


def save_gguf(family, folder):
    config = json.loads((folder / 'config.json').read_text())
    tensors = {}
    for file in sorted(folder.glob('*.safetensors')):
        tensors.update((name, tensor.float().numpy())
                       for name, tensor in load_file(file).items())
    writer = gguf.GGUFWriter(folder / 'model.gguf', family.architecture)
    gguf_metadata.add_all(writer, family, config | family.gguf_config)
    gguf_tensors.write_all(writer, family, config, tensors)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def expected(family, model, prompts):
    gguf_model = None
    if family.gguf_config:
        gguf_model = reference.build(family, model, family.gguf_config)
    cases = []
    for name, ids in prompts:
        case = dict(name=name, ids=ids[0].tolist(),
                    positions=reference.positions(ids.shape[1]),
                    logits=reference.encode(reference.logits(model, ids)))
        if gguf_model is not None:
            case['gguf_logits'] = reference.encode(
                reference.logits(gguf_model, ids))
        cases.append(case)
    return dict(family=family.name, vocab_size=family.config['vocab_size'],
                prompts=cases)


def largest_move(model, other, prompts):
    return max((reference.logits(model, ids) - reference.logits(other, ids))
               .abs().max().item() for _, ids in prompts)


def changed(family, model, change):
    if isinstance(change, dict):
        return reference.build(family, model, change)
    other = reference.build(family, model)
    change(other)
    return other


def nudged(family, model, trial):
    """The model with embeddings changed by about a rounding error."""
    other = reference.build(family, model)
    embedding = other.get_input_embeddings().weight
    generator = torch.Generator().manual_seed(trial)
    with torch.no_grad():
        embedding *= 1 + 1e-6 * torch.randn(
            embedding.shape, generator=generator)
    return other


def report(family, model, prompts):
    """Prints the family's row; returns whether its figures will do."""
    largest = max(reference.logits(model, ids).abs().max().item()
                  for _, ids in prompts)
    noise = max(largest_move(model, nudged(family, model, trial), prompts)
                for trial in range(4))
    moves = {name: largest_move(model, changed(family, model, change), prompts)
             for name, change in family.options.items()}
    told = ', '.join(f'{name} {move:.2f}' for name, move in moves.items())
    print(f'| {family.name} | {largest:.2f} | {noise:.1e} | {told} |',
          flush=True)
    return noise < STEADY and all(move > SEEN for move in moves.values())


def check_files(family, model, folder, prompts):
    """Both kinds of config.json must give the model that was saved."""
    assert largest_move(model, reference.load(folder), prompts) == 0
    old = folder / 'config_old.json'
    if not old.exists():
        return
    config = transformers.AutoConfig.from_pretrained(old)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(
        folder, config=config, attn_implementation='eager',
        experts_implementation='eager', dtype=torch.float32).eval()
    assert largest_move(model, loaded, prompts) == 0


def make(family):
    folder = HERE / family.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    seed = zlib.crc32(family.name.encode())
    model = reference.build(family)
    random_weights.fill(model, seed)
    model.tie_weights()
    prompts = reference.prompts(family, seed + 1)
    save_hugging_face(family, model, folder)
    save_gguf(family, folder)
    check_files(family, model, folder, prompts)
    (folder / 'expected.json').write_text(
        json.dumps(expected(family, model, prompts), indent=1) + '\n')
    return report(family, model, prompts)


def main():
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    wanted = sys.argv[1:]
    bad = [family.name for family in FAMILIES
           if (not wanted or family.name in wanted) and not make(family)]
    if bad:
        sys.exit(f'unseen option or unsteady logits: {", ".join(bad)}')


if __name__ == '__main__':
    main()
