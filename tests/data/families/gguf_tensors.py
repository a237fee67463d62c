"""Tensors of a GGUF, from those of the safetensors beside it."""

import math
import re

import gguf
import numpy

EXPERT = re.compile(r'model\.layers\.(\d+)\..*experts\.(\d+)\.(\w+)\.weight')

EXPERT_PARTS = {
    'gate_proj': gguf.MODEL_TENSOR.FFN_GATE_EXP,
    'up_proj': gguf.MODEL_TENSOR.FFN_UP_EXP,
    'down_proj': gguf.MODEL_TENSOR.FFN_DOWN_EXP,
    'w1': gguf.MODEL_TENSOR.FFN_GATE_EXP,
    'w3': gguf.MODEL_TENSOR.FFN_UP_EXP,
    'w2': gguf.MODEL_TENSOR.FFN_DOWN_EXP,
}

# llama.cpp rotates pairs of neighbours in these.
INTERLEAVED = ('llama', 'smollm3', 'granite', 'granitemoe')

SINGLE = ('ffn_gate_inp.weight',)  # matrices kept in F32


def write_all(writer, family, config, tensors):
    """`tensors`: name in the safetensors -> float32 array."""
    names = gguf.get_tensor_name_map(
        next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items()
             if name == family.architecture),
        config['num_hidden_layers'])
    experts = {}
    for name, array in tensors.items():
        found = EXPERT.fullmatch(name)
        if found:
            layer, index, part = found.groups()
            stack = experts.setdefault((int(layer), EXPERT_PARTS[part]), {})
            stack[int(index)] = array
            continue
        for part, values in _modified(name, array, family, config):
            _add(writer, _gguf_name(names, part), values)
    for (layer, kind), stack in experts.items():
        name = gguf.TENSOR_NAMES[kind].format(bid=layer) + '.weight'
        _add(writer, name, numpy.stack([stack[i] for i in range(len(stack))]))
    for name, values in _rope_tensors(config):
        _add(writer, name, values)


def _gguf_name(names, name):
    if name.startswith('blk.'):
        return name
    name = name.replace('e_score_correction_bias', 'e_score_correction.bias')
    mapped = names.get_name(name, try_suffixes=('.weight', '.bias'))
    assert mapped is not None, name
    return mapped


def _add(writer, name, values):
    matrix = values.ndim > 1 and not name.endswith(SINGLE)
    kind = numpy.float16 if matrix else numpy.float32
    stored = numpy.ascontiguousarray(values.astype(kind))
    assert (stored.astype(numpy.float32) == values).all(), name
    writer.add_tensor(name, stored)


def _interleave(array, heads):
    """From halves of a head that rotate together to pairs of neighbours."""
    split = array.reshape(heads, 2, array.shape[0] // heads // 2,
                          *array.shape[1:])
    return split.swapaxes(1, 2).reshape(array.shape)


def _modified(name, array, family, config):
    if family.architecture in INTERLEAVED:
        if re.search(r'\.q_proj\.', name):
            array = _interleave(array, config['num_attention_heads'])
        elif re.search(r'\.k_proj\.', name):
            array = _interleave(array, config['num_key_value_heads'])
    if family.architecture.startswith('gemma') and name.endswith('norm.weight'):
        array = array + 1
    if name.endswith('kv_b_proj.weight') and family.gguf_split_latent:
        heads = config['num_attention_heads']
        plain = config['qk_nope_head_dim']
        both = array.reshape(heads, -1, array.shape[-1])
        yield (name.replace('kv_b_proj', 'k_b_proj'),
               both[:, :plain].swapaxes(1, 2))
        yield name.replace('kv_b_proj', 'v_b_proj'), both[:, plain:]
        return
    if name.endswith('block_sparse_moe.input_linear.weight'):
        gate, up = numpy.split(array, 2, axis=1)
        layer = name.split('.')[2]
        yield f'blk.{layer}.ffn_gate_exps.weight', gate
        yield f'blk.{layer}.ffn_up_exps.weight', up
        return
    yield name, array


def _rope_tensors(config):
    rope = config['rope_parameters']
    if rope.get('rope_type') == 'longrope':
        yield 'rope_factors_long.weight', numpy.float32(rope['long_factor'])
        yield 'rope_factors_short.weight', numpy.float32(rope['short_factor'])
    elif rope.get('rope_type') == 'llama3':
        yield 'rope_freqs.weight', _llama3_divisors(rope, config['head_dim'])


def _llama3_divisors(rope, head_dim):
    steps = numpy.arange(0, head_dim, 2, dtype=numpy.float32) / head_dim
    lengths = 2 * math.pi * numpy.float64(rope['rope_theta']) ** steps
    original = rope['original_max_position_embeddings']
    low, high = rope['low_freq_factor'], rope['high_freq_factor']
    part = (original / lengths - low) / (high - low)
    smooth = 1 / ((1 - part) / rope['factor'] + part)
    divisors = numpy.where(lengths > original / low, rope['factor'], smooth)
    divisors = numpy.where(lengths < original / high, 1.0, divisors)
    return divisors.astype(numpy.float32)
