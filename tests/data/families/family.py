"""What a family of this set is, and the ways to do without its options."""

import dataclasses
from typing import Callable

import torch

VOCABULARY = 288

# Special tokens, the first ids of the vocabulary.
END_OF_TEXT, TURN_START, TURN_END, PADDING = range(4)

# Takes an option away: new values for the configuration, or an edit of the
# loaded model.
Change = dict | Callable[[torch.nn.Module], None]


@dataclasses.dataclass(frozen=True)
class Family:
    name: str
    config_class: str  # of transformers
    config: dict
    # Each option that the family stands for, and how to do without it.
    options: dict[str, Change]
    architecture: str  # general.architecture of the GGUF
    prompts: tuple[str, ...] = ('short', 'window', 'long')
    dtype: torch.dtype = torch.bfloat16  # of the safetensors
    shard_bytes: int | None = None
    # What a GGUF cannot say: the configuration that its readers see instead.
    # expected.json then holds a second set of logits.
    gguf_config: dict = dataclasses.field(default_factory=dict)
    # False: as older writers did, kv_b in one tensor, or no sizes of heads.
    gguf_split_latent: bool = True
    gguf_head_sizes: bool = True
    # config.json as transformers before version 5 wrote it, from the new one.
    old_config: Callable[[dict], dict] | None = None


def sizes(**changes):
    """The common part of all configurations. `head_dim` None: left out."""
    config = dict(
        vocab_size=VOCABULARY,
        hidden_size=32,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=32,
        max_position_embeddings=128,
        rms_norm_eps=1e-5,
        bos_token_id=END_OF_TEXT,
        eos_token_id=TURN_END,
        pad_token_id=PADDING,
        tie_word_embeddings=False,
    )
    config.update(changes)
    if config['head_dim'] is None:
        del config['head_dim']
    return config


def rope(theta=10000.0, kind='default', **values):
    return dict(rope_parameters=dict(
        rope_theta=theta, rope_type=kind, **values))


def zeroed(*endings):
    """Sets the parameters whose names end so to zero."""

    def change(model):
        names = [name for name, tensor in model.state_dict().items()
                 if name.endswith(endings)]
        assert names, endings
        with torch.no_grad():
            for name in names:
                model.state_dict()[name].zero_()

    return change


def bypassed(*endings):
    """Replaces the modules whose names end so by the identity."""

    def change(model):
        names = [name for name, _ in model.named_modules()
                 if name.endswith(endings)]
        assert names, endings
        for name in names:
            parent, _, child = name.rpartition('.')
            setattr(model.get_submodule(parent), child, torch.nn.Identity())

    return change


def unscaled_embedding(model):
    """Takes Gemma's factor sqrt(hidden) away."""
    embedding = model.get_input_embeddings()
    if hasattr(embedding, 'embed_scale'):
        embedding.embed_scale = torch.tensor(1.0)
        return
    with torch.no_grad():
        embedding.weight /= model.config.hidden_size ** 0.5
        model.lm_head.weight = torch.nn.Parameter(
            embedding.weight * model.config.hidden_size ** 0.5)
