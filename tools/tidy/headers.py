"""Compiles every header of a library alone, so that none leans on what its
users include before it."""

import concurrent.futures
import os
import subprocess


def _compile(header, root, build):
    command = [
        os.environ.get('CXX', 'g++'), '-std=c++20', '-fsyntax-only', '-w',
        '-x', 'c++', f'-I{root}', f'-I{build}/generated', '-',
    ]
    # Twice: a header also has to survive being included again.
    source = f'#include "{header}"\n#include "{header}"\n'
    done = subprocess.run(
        command, input=source, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    errors = [line for line in done.stderr.splitlines() if 'error:' in line]
    return f'{header}:1: does not compile alone: ' + (
        errors[0] if errors else done.stderr.strip())


def check(repository, layers, root, build):
    """Returns one printable line for each header that fails."""
    chosen = [
        path for path in repository.paths()
        if path.endswith('.h') and layers.owners(path)
    ]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda path: _compile(path, root, build), chosen)
    return [result for result in results if result is not None]
