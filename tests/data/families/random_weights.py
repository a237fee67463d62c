"""Random weights that BF16, F16 and F32 all hold exactly."""

import torch

# Ending of a parameter's name, exponent s of its grid k / 2^s, and spread: of
# what a matrix makes of a unit-normal input, or of the values of an embedding
# or a bias. Queries and keys are large enough that attention is far from
# uniform, and small enough that rounding does not grow.
GRIDS = (
    ('embed_tokens.weight', 8, 0.35),
    ('e_score_correction_bias', 8, 0.30),
    ('bias', 8, 0.30),
    ('lm_head.weight', 9, 0.80),
    ('q_proj.weight', 8, 1.10),
    ('k_proj.weight', 8, 1.10),
    ('qkv_proj.weight', 8, 1.00),
    ('kv_a_proj_with_mqa.weight', 8, 1.10),
    ('q_a_proj.weight', 8, 1.10),
    ('q_b_proj.weight', 8, 1.10),
    ('kv_b_proj.weight', 8, 1.00),
    ('gate.weight', 8, 1.50),
    ('', 9, 0.80),
)

# An embedding that is the output head too is small, or logits would be huge.
TIED_EMBEDDING = (10, 0.12)


def _on_grid(name, shape, tied, generator):
    exponent, spread = next((exponent, spread)
                            for ending, exponent, spread in GRIDS
                            if name.endswith(ending))
    if name.endswith('embed_tokens.weight'):
        exponent, spread = TIED_EMBEDDING if tied else (exponent, spread)
    elif len(shape) > 1:
        spread /= shape[-1] ** 0.5
    values = torch.randn(shape, generator=generator) * spread
    steps = torch.round(values * 2**exponent).clamp(-255, 255)
    return steps / 2**exponent


def _gain(shape, around, generator):
    steps = torch.randint(-64, 97, shape, generator=generator)
    return around + steps / 128


def fill(model, seed):
    """Overwrites every parameter, and the router's selection bias."""
    generator = torch.Generator().manual_seed(seed)
    # Gemma stores its gains less one.
    around = 0 if model.config.model_type.startswith('gemma') else 1
    tied = model.config.tie_word_embeddings
    tensors = dict(model.named_parameters())
    tensors.update((name, buffer) for name, buffer in model.named_buffers()
                   if name.endswith('e_score_correction_bias'))
    with torch.no_grad():
        for name in sorted(tensors):
            tensor = tensors[name]
            if name.endswith('norm.weight'):
                tensor.copy_(_gain(tensor.shape, around, generator))
                continue
            tensor.copy_(_on_grid(name, tensor.shape, tied, generator))
