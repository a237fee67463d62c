#!/usr/bin/env python3
"""Makes GGUF files of the real model in other weight types.

  requantise.py --model models/SmolLM2-135M-Instruct.Q4_1.gguf --out DIR \\
    [--types F16,BF16,Q8_0,...]

The K and IQ4_XS types take rows that divide by 256, and the model's are 576
wide. So it is first written out in F32 with the width padded to 768: more
heads and more hidden dimensions, all zero, and norms that make up for the
larger mean. It computes the same function, which `perplexity` shows.

Needs the Python packages gguf, numpy and llama-cpp-python, whose library does
the quantising.
"""

import argparse
import ctypes
import math
import pathlib

import gguf
import llama_cpp
import numpy as np

TYPES = ('F32 F16 BF16 Q8_0 Q4_0 Q4_1 Q5_0 Q5_1 Q2_K Q3_K Q4_K Q5_K Q6_K '
         'IQ4_NL IQ4_XS').split()
# Of llama.cpp's file types (enum llama_ftype), the one that asks for the type.
_FILE_TYPES = {
    'Q8_0': 7, 'Q4_0': 2, 'Q4_1': 3, 'Q5_0': 8, 'Q5_1': 9, 'F16': 1, 'BF16': 32,
    'Q2_K': 10, 'Q3_K': 12, 'Q4_K': 15, 'Q5_K': 17, 'Q6_K': 18, 'IQ4_NL': 25,
    'IQ4_XS': 30,
}
_GROUP = 3  # query heads of a KV head
_DIM = 64


class Shape:
  """Widths before and after padding to a multiple of 256."""

  def __init__(self, reader):
    key = lambda name: int(reader.fields[f'llama.{name}'].contents())
    self.hidden = key('embedding_length')
    self.heads = key('attention.head_count')
    self.kv_heads = key('attention.head_count_kv')
    if self.heads != _GROUP * self.kv_heads:
      raise SystemExit('this padding is for groups of three query heads')
    self.wide = math.ceil(self.hidden / 256) * 256
    self.wide_kv_heads = self.wide // _DIM // _GROUP

  def padded(self, name, values):
    """The tensor `name` of the wider model."""
    kind = name.removesuffix('.weight').rsplit('.', 1)[-1]
    if kind.endswith('norm'):
      shrink = math.sqrt(self.hidden / self.wide)
      return np.pad(values * shrink, (0, self.wide - self.hidden))
    # [out, in] of each kind after padding.
    out, depth = {
        'token_embd': (values.shape[0], self.wide),
        'attn_q': (self.wide, self.wide),
        'attn_k': (self.wide_kv_heads * _DIM, self.wide),
        'attn_v': (self.wide_kv_heads * _DIM, self.wide),
        'attn_output': (self.wide, self.wide),
        'ffn_gate': (values.shape[0], self.wide),
        'ffn_up': (values.shape[0], self.wide),
        'ffn_down': (self.wide, values.shape[1]),
    }[kind]
    return np.pad(values, ((0, out - values.shape[0]),
                           (0, depth - values.shape[1])))


def write_wide(source, path):
  """The source model in F32, padded."""
  reader = gguf.GGUFReader(source)
  shape = Shape(reader)
  changed = {
      'llama.embedding_length': shape.wide,
      'llama.attention.head_count': shape.wide // _DIM,
      'llama.attention.head_count_kv': shape.wide_kv_heads,
      'llama.rope.dimension_count': _DIM,
      'general.file_type': 0,
  }
  writer = gguf.GGUFWriter(path, 'llama')
  for name, field in reader.fields.items():
    if name.startswith('GGUF.') or name == 'general.architecture':
      continue
    value = changed.get(name, field.contents())
    if name == 'llama.attention.layer_norm_rms_epsilon':
      value = value * shape.hidden / shape.wide
    element = field.types[1] if len(field.types) > 1 else None
    writer.add_key_value(name, value, field.types[0], element)
  for tensor in reader.tensors:
    values = gguf.dequantize(tensor.data, tensor.tensor_type)
    writer.add_tensor(tensor.name,
                      shape.padded(tensor.name, values).astype(np.float32))
  writer.write_header_to_file()
  writer.write_kv_data_to_file()
  writer.write_tensors_to_file()
  writer.close()


def quantise(wide, path, name):
  """Every matrix in the one type: llama.cpp's mixtures are not wanted."""
  params = llama_cpp.llama_model_quantize_default_params()
  params.ftype = _FILE_TYPES[name]
  params.pure = True
  params.nthread = 2
  status = llama_cpp.llama_model_quantize(
      str(wide).encode(), str(path).encode(), ctypes.byref(params))
  if status != 0:
    raise SystemExit(f'quantising to {name} failed with {status}')


def main():
  parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
  parser.add_argument('--model', required=True)
  parser.add_argument('--out', required=True, type=pathlib.Path)
  parser.add_argument('--types', default=','.join(TYPES))
  args = parser.parse_args()
  args.out.mkdir(parents=True, exist_ok=True)
  wide = args.out / 'F32.gguf'
  write_wide(args.model, wide)
  for name in args.types.split(','):
    if name != 'F32':
      quantise(wide, args.out / f'{name}.gguf', name)


if __name__ == '__main__':
  main()
