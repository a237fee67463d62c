"""Logits by transformers: float32, eager attention, no cache."""

import base64

import torch
import transformers

from family import VOCABULARY, Family

# Token counts: within every window, past the windows of 16, and past the
# contexts of 64 that some rope scalings start from.
PROMPTS = dict(short=8, window=40, long=72)


def prompts(family, seed):
    """Pairs of a name and ids [1, count]."""
    generator = torch.Generator().manual_seed(seed)
    return [(name, torch.randint(4, VOCABULARY, (1, PROMPTS[name]),
                                 generator=generator))
            for name in family.prompts]


def positions(count):
    """Those whose logits are kept: first, middle and last."""
    return [0, count // 2, count - 1]


def build(family: Family, seed_model=None, changes=None):
    """A float32 model, with the weights of `seed_model` where given."""
    config = getattr(transformers, family.config_class)(
        **(family.config | (changes or {})))
    model = transformers.AutoModelForCausalLM.from_config(
        config, attn_implementation='eager', experts_implementation='eager',
        dtype=torch.float32)
    if seed_model is not None:
        model.load_state_dict(seed_model.state_dict())
        model.tie_weights()
    return model.eval()


def load(folder):
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation='eager', experts_implementation='eager',
        dtype=torch.float32)
    return model.eval()


def logits(model, ids):
    """[len(positions), vocabulary]"""
    with torch.no_grad():
        rows = model(ids, use_cache=False).logits[0]
    return rows[positions(ids.shape[1])].contiguous()


def encode(rows):
    """Each row as base64 of its little-endian float32 values."""
    return [base64.b64encode(row.numpy().astype('<f4').tobytes()).decode()
            for row in rows]
