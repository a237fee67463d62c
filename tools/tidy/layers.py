"""The libraries that configure wrote to layers.txt, and who owns a file."""

import dataclasses
import posixpath


@dataclasses.dataclass(frozen=True)
class Library:
    rank: int
    name: str
    directory: str
    deps: tuple


class Layers:

    def __init__(self, libraries):
        self._by_name = {library.name: library for library in libraries}
        self._by_directory = {}
        for library in libraries:
            self._by_directory.setdefault(library.directory, []).append(library)

    @classmethod
    def parse(cls, text):
        libraries = []
        for line in text.splitlines():
            rank, name, directory, deps = line.split('|')
            libraries.append(
                Library(
                    int(rank), name, directory,
                    tuple(dep for dep in deps.split(',') if dep),
                )
            )
        return cls(libraries)

    def owners(self, path):
        """Libraries of the nearest directory above `path`; may be none."""
        directory = posixpath.dirname(path)
        while directory:
            if directory in self._by_directory:
                return self._by_directory[directory]
            directory = posixpath.dirname(directory)
        return []

    def reachable(self, libraries):
        """Names of the libraries and all that they link, transitively."""
        seen, left = set(), [library.name for library in libraries]
        while left:
            name = left.pop()
            if name in seen or name not in self._by_name:
                continue
            seen.add(name)
            left.extend(self._by_name[name].deps)
        return seen
