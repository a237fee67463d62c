#!/usr/bin/env python3
"""Makes models of other weight types to measure speeds with.

  make_typed_models.py --model MODEL.gguf --out FOLDER

Q4_0, Q8_0, BF16 and F16 are the given model's matrices, quantised anew. Types of
256-element blocks need rows that those divide, so Q4_K, Q5_K, Q6_K and Q8_0-wide
are models of its vocabulary with a hidden size of 768 and random weights of the
usual size: right for speed, nonsense as text. Needs the `gguf` package.
"""

import argparse
import pathlib

import gguf
import numpy

_TYPE = gguf.GGMLQuantizationType
_PLAIN = {'Q4_0': _TYPE.Q4_0, 'Q8_0': _TYPE.Q8_0, 'BF16': _TYPE.BF16,
          'F16': _TYPE.F16}
_WIDE = {'Q4_K': _TYPE.Q4_K, 'Q5_K': _TYPE.Q5_K, 'Q6_K': _TYPE.Q6_K,
         'Q8_0-wide': _TYPE.Q8_0}
# Hidden size, heads and KV heads of 64, feed-forward, layers.
_SIZES = {'embedding_length': 768, 'attention.head_count': 12,
          'attention.head_count_kv': 4, 'feed_forward_length': 2048,
          'block_count': 24}
_RMS = 0.02  # of a weight


def copy_fields(reader, writer, changes):
    """Metadata of the model, with other numbers where `changes` names them."""
    for field in reader.fields.values():
        if field.name.startswith('GGUF.') or field.name == 'general.architecture':
            continue
        short = field.name.removeprefix('llama.')
        value = changes.get(short, field.contents())
        sub_type = field.types[-1] if len(field.types) > 1 else None
        writer.add_key_value(field.name, value, field.types[0], sub_type)


def requantised(reader, kind):
    """(name, stored rows, type) of the model's tensors; norms stay floats."""
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        if len(tensor.shape) == 1:
            yield tensor.name, values.astype(numpy.float32), _TYPE.F32
        elif tensor.name == 'token_embd.weight' and kind == _TYPE.Q4_0:
            yield tensor.name, tensor.data, tensor.tensor_type
        else:
            yield tensor.name, gguf.quants.quantize(values, kind), kind


def half(value, count):
    return numpy.full(count, value, numpy.float16).view(numpy.uint8).reshape(
        count, 2)


def random_rows(random, rows, cols, kind):
    """Rows of random blocks of `kind` whose elements have the usual size."""
    if kind == _TYPE.Q8_0:
        values = random.standard_normal((rows, cols), numpy.float32) * _RMS
        return gguf.quants.quantize(values, kind)
    size = gguf.GGML_QUANT_SIZES[kind][1]
    count = rows * cols // 256
    blocks = random.integers(0, 256, (count, size), numpy.uint8)
    if kind == _TYPE.Q6_K:
        blocks[:, 192:208] = random.integers(1, 64, (count, 16), numpy.uint8)
        blocks[:, 208:] = half(_RMS / (18.5 * 32), count)
    else:
        # Six-bit scales and minimums, all 33: 100001, in the packing of
        # KScales.
        blocks[:, 4:12] = 0b10100001
        blocks[:, 12:16] = 0b00010001
        levels = 16 if kind == _TYPE.Q4_K else 32
        scale = _RMS / (33 * levels / 3.46)
        blocks[:, 0:2] = half(scale, count)
        blocks[:, 2:4] = half(scale * (levels - 1) / 2, count)
    return blocks.reshape(rows, -1)


def wide(reader, kind):
    random = numpy.random.default_rng(1)
    hidden, ffn = _SIZES['embedding_length'], _SIZES['feed_forward_length']
    kv = 64 * _SIZES['attention.head_count_kv']
    vocab = next(int(tensor.shape[1]) for tensor in reader.tensors
                 if tensor.name == 'token_embd.weight')
    shapes = {'attn_q': (hidden, hidden), 'attn_k': (kv, hidden),
              'attn_v': (kv, hidden), 'attn_output': (hidden, hidden),
              'ffn_gate': (ffn, hidden), 'ffn_up': (ffn, hidden),
              'ffn_down': (hidden, ffn)}
    ones = numpy.ones(hidden, numpy.float32)
    yield 'token_embd.weight', random_rows(random, vocab, hidden,
                                           _TYPE.Q8_0), _TYPE.Q8_0
    yield 'output_norm.weight', ones, _TYPE.F32
    for layer in range(_SIZES['block_count']):
        prefix = f'blk.{layer}.'
        yield prefix + 'attn_norm.weight', ones, _TYPE.F32
        yield prefix + 'ffn_norm.weight', ones, _TYPE.F32
        for name, (rows, cols) in shapes.items():
            yield (f'{prefix}{name}.weight',
                   random_rows(random, rows, cols, kind), kind)


def write(reader, path, tensors, changes):
    writer = gguf.GGUFWriter(path, 'llama')
    copy_fields(reader, writer, changes)
    for name, data, kind in tensors:
        writer.add_tensor(name, data, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--model', required=True)
    parser.add_argument('--out', required=True, type=pathlib.Path)
    parser.add_argument('--types', nargs='+', default=[*_PLAIN, *_WIDE])
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    reader = gguf.GGUFReader(arguments.model)
    for name in arguments.types:
        path = arguments.out / f'{name}.gguf'
        if name in _PLAIN:
            write(reader, path, requantised(reader, _PLAIN[name]), {})
        else:
            write(reader, path, wide(reader, _WIDE[name]), _SIZES)


if __name__ == '__main__':
    main()
