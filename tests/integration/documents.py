"""The examples of the documents, which are run as they stand."""

import re

import cluster


def examples(documents, word):
    """(document, command) of each bash block that has the word."""
    for name in documents:
        text = (cluster.ROOT / name).read_text(encoding='utf-8')
        for block in re.findall(r'^```bash\n(.*?)^```', text, re.M | re.S):
            if word in block:
                yield name, block
