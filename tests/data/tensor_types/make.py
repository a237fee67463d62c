"""Makes the files of this directory; see README.md.

    python make.py OUT_DIRECTORY

Needs the PyPI packages gguf and numpy.
"""

import pathlib
import sys

import gguf
import numpy as np

Type = gguf.GGMLQuantizationType

# Where a block keeps its F16 numbers; everything else in it is random bits.
HALF_OFFSETS = {
    Type.F16: [0],
    Type.BF16: [],
    Type.Q4_0: [0],
    Type.Q4_1: [0, 2],
    Type.Q5_0: [0],
    Type.Q5_1: [0, 2],
    Type.Q8_0: [0],
    Type.Q2_K: [80, 82],
    Type.Q3_K: [108],
    Type.Q4_K: [0, 2],
    Type.Q5_K: [0, 2],
    Type.Q6_K: [208],
    Type.IQ4_NL: [0],
    Type.IQ4_XS: [0],
}
QUANTISERS = [Type.F16, Type.BF16, Type.Q4_0, Type.Q4_1, Type.Q5_0, Type.Q5_1,
              Type.Q8_0]
ELEMENTS = 2048


def finite_half(random):
    while True:
        bits = np.uint16(random.integers(0, 1 << 16))
        if np.isfinite(bits.view(np.float16)):
            return bits.tobytes()


def random_blocks(kind, random):
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = []
    for _ in range(ELEMENTS // elements):
        block = bytearray(random.bytes(size))
        if kind == Type.BF16:  # a finite one
            block[1] = block[1] & 0xBF
        for offset in HALF_OFFSETS[kind]:
            block[offset:offset + 2] = finite_half(random)
        blocks.append(bytes(block))
    return b"".join(blocks)


def source_values(random):
    """Blocks of 32 that quantisers find hard, and ordinary ones."""
    rows = [random.normal(0, scale, 32) for scale in
            (1, 0.02, 1e-4, 1e-7, 300) for _ in range(4)]
    rows.append(np.zeros(32))
    rows.append(np.full(32, 0.75))
    rows.append(np.full(32, -0.75))
    rows.append(np.linspace(-8, 7.5, 32))  # ties between quants
    rows.append(np.linspace(-127, 127, 32))
    rows.append(np.arange(32) - 15.5)
    rows.append(np.where(np.arange(32) % 2, 3.0, -3.0))  # equal magnitudes
    rows.append(np.abs(random.normal(0, 1, 32)))
    rows.append(-np.abs(random.normal(0, 1, 32)))
    rows.append(np.eye(32)[7] * 5)
    rows.append(np.eye(32)[9] * -5)
    rows.append(random.normal(0, 1, 32) * 10.0 ** random.integers(-6, 3, 32))
    return np.concatenate(rows).astype(np.float32)


def main():
    out = pathlib.Path(sys.argv[1])
    random = np.random.default_rng(20240607)
    for kind in HALF_OFFSETS:
        stored = random_blocks(kind, random)
        values = gguf.dequantize(np.frombuffer(stored, np.uint8), kind)
        name = kind.name.lower()
        (out / f"{name}.blocks").write_bytes(stored)
        (out / f"{name}.f32").write_bytes(values.astype("<f4").tobytes())
    source = source_values(random)
    (out / "source.f32").write_bytes(source.astype("<f4").tobytes())
    for kind in QUANTISERS:
        stored = gguf.quantize(source, kind)
        (out / f"{kind.name.lower()}.quantized").write_bytes(stored.tobytes())


main()
