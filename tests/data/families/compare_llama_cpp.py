"""Compares each model.gguf with llama.cpp, a second opinion on conventions.

    pip install gguf llama-cpp-python && python3 compare_llama_cpp.py [NAME...]

llama.cpp reads a copy with all weights in F32 (it would round activations to
F16 before an F16 matrix) and keeps K and V in F32. Prints the largest error of
a logit for each prompt.
"""

import base64
import json
import pathlib
import sys
import tempfile

import gguf
import llama_cpp
import numpy

HERE = pathlib.Path(__file__).parent


def copy_in_float(source, target):
    reader = gguf.GGUFReader(source)
    fields = reader.fields
    architecture = fields['general.architecture'].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for name, field in fields.items():
        if name.startswith('GGUF.') or name == 'general.architecture':
            continue
        kind = field.types[0]
        item = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        value = field.contents()
        if name == 'general.name':
            value = 'model'  # "phi3" in it asks for tokens of Phi-3's own
        writer.add_key_value(name, value, kind, sub_type=item)
    # Without a query rank llama.cpp takes models of 27 layers only.
    if (architecture == 'deepseek2' and
            'deepseek2.attention.q_lora_rank' not in fields):
        writer.add_q_lora_rank(0)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, tensor.data.astype(numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def yarn_betas(file):
    """For most architectures llama.cpp takes these from its caller only."""
    fields = gguf.GGUFReader(file).fields
    betas = {}
    for name in ('yarn_beta_fast', 'yarn_beta_slow'):
        key = next((key for key in fields if key.endswith(name)), None)
        betas[name] = fields[key].contents() if key else -1.0
    return betas


def errors(model, cases):
    for case in cases:
        model.reset()
        model.eval(case['ids'])
        rows = case.get('gguf_logits', case['logits'])
        worst = 0.0
        for position, row in zip(case['positions'], rows):
            want = numpy.frombuffer(base64.b64decode(row), dtype='<f4')
            worst = max(worst, abs(model.scores[position] - want).max())
        yield case['name'], worst


def main():
    wanted = sys.argv[1:] or sorted(
        file.parent.name for file in HERE.glob('*/model.gguf'))
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            cases = json.loads((HERE / name / 'expected.json').read_text())
            copy = pathlib.Path(folder) / f'{name}.gguf'
            copy_in_float(HERE / name / 'model.gguf', copy)
            model = llama_cpp.Llama(
                str(copy), n_ctx=256, n_batch=256, n_threads=1,
                logits_all=True, flash_attn=False, verbose=False,
                type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32,
                yarn_attn_factor=-1.0, **yarn_betas(copy))
            found = ' | '.join(f'{worst:.1e}' for _, worst in
                               errors(model, cases['prompts']))
            print(f'| {name} | {found} |', flush=True)
            model.close()


if __name__ == '__main__':
    main()
