"""The vocabulary that all families share: byte-level BPE of 288 tokens."""

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from family import VOCABULARY

SPECIAL = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<|pad|>']

MERGES = [
    ('Ġ', 't'), ('h', 'e'), ('i', 'n'), ('Ġ', 'a'), ('r', 'e'), ('o', 'n'),
    ('Ġt', 'he'), ('e', 'r'), ('Ġ', 's'), ('a', 't'), ('Ġ', 'w'), ('o', 'u'),
    ('n', 'd'), ('i', 's'), ('Ġ', 'o'), ('o', 'r'), ('e', 'n'), ('Ġ', 'c'),
    ('i', 't'), ('in', 'g'), ('Ġa', 'nd'), ('Ġo', 'f'), ('e', 's'), ('Ġ', 'b'),
    ('l', 'l'), ('e', 'd'), ('Ġ', 'in'), ('s', 't'),
]

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
    "'<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def token_texts():
    """All tokens in order of id, as the GPT-2 alphabet spells their bytes."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    return SPECIAL + letters + [left + right for left, right in MERGES]


def make():
    texts = token_texts()
    assert len(texts) == VOCABULARY and len(set(texts)) == VOCABULARY
    tokenizer = Tokenizer(models.BPE(
        vocab={text: index for index, text in enumerate(texts)},
        merges=MERGES))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True) for text in SPECIAL])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=SPECIAL[0], eos_token=SPECIAL[2],
        pad_token=SPECIAL[3], chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False)
