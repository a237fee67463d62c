"""Compares each model.gguf with what llama.cpp's own converter makes of the
Hugging Face folder beside it.

    python3 compare_converter.py LLAMA_CPP [NAME...]

LLAMA_CPP: a source tree of llama.cpp. Prints what differs: keys, tensors, types
and values.
"""

import pathlib
import sys
import tempfile

import numpy

HERE = pathlib.Path(__file__).parent

# Of the model card, not of the model.
CARD = ('general.name', 'general.size_label', 'general.basename',
        'general.finetune', 'general.quantization_version', 'general.sampling',
        'general.quantized_by', 'general.languages', 'general.tags')


def convert(source, target):
    from conversion import get_model_class
    from conversion.base import ModelBase, TextModel, get_model_architecture
    import gguf
    hparams = ModelBase.load_hparams(source, False)
    name = get_model_architecture(hparams, 0)
    model = get_model_class(name)
    # It knows pre-tokenizers by a hash of what they do to a certain text.
    TextModel.get_vocab_base_pre = lambda self, tokenizer: 'gpt-2'
    model.set_vocab = lambda self: self._set_vocab_gpt2()
    with __import__('torch').inference_mode():
        model(source, gguf.LlamaFileType.MOSTLY_F16, target).write()


def read(file):
    import gguf
    reader = gguf.GGUFReader(file)
    keys = {name: field.contents() for name, field in reader.fields.items()
            if not name.startswith(('GGUF.',) + CARD)}
    tensors = {tensor.name: (tensor.tensor_type.name, tensor.data)
               for tensor in reader.tensors}
    return keys, tensors


def differences(ours, theirs):
    keys, tensors = ours
    their_keys, their_tensors = theirs
    for name in sorted(set(keys) | set(their_keys)):
        if keys.get(name) != their_keys.get(name):
            yield f'{name}: {keys.get(name)!r} / {their_keys.get(name)!r}'[:200]
    for name in sorted(set(tensors) | set(their_tensors)):
        if name not in tensors or name not in their_tensors:
            yield f'{name}: only {"here" if name in tensors else "there"}'
            continue
        (kind, data), (their_kind, their_data) = (tensors[name],
                                                  their_tensors[name])
        if kind != their_kind or data.shape != their_data.shape:
            yield f'{name}: {kind} {data.shape} / {their_kind} ' \
                  f'{their_data.shape}'
        elif not numpy.allclose(data, their_data, rtol=1e-6, atol=0):
            yield f'{name}: other values'


def main():
    tree = pathlib.Path(sys.argv[1])
    sys.path[:0] = [str(tree), str(tree / 'gguf-py')]
    wanted = sys.argv[2:] or sorted(
        file.parent.name for file in HERE.glob('*/model.gguf'))
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted:
            target = pathlib.Path(folder) / f'{name}.gguf'
            convert(HERE / name, target)
            found = list(differences(read(HERE / name / 'model.gguf'),
                                     read(target)))
            print(f'{name}: {len(found)} differences')
            for line in found:
                print('   ', line)


if __name__ == '__main__':
    main()
