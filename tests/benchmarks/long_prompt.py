#!/usr/bin/env python3
"""How long running answers wait for a long prompt that arrives beside them, and
how long the prompt waits for its first token, alone and beside them. For any
server of the OpenAI completions API that takes token ids."""

import argparse
import http.client
import json
import random
import statistics
import threading
import time


class Stream:
    """One streamed completion on a thread of its own: when its pieces came."""

    def __init__(self, args, prompt, tokens):
        self.began = time.monotonic()
        self.times = []
        self._body = json.dumps({
            'model': args.model, 'prompt': prompt, 'max_tokens': tokens,
            'stream': True, 'temperature': 0, 'ignore_eos': True})
        self._server = args.http
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        connection = http.client.HTTPConnection(self._server, timeout=600)
        connection.request('POST', '/v1/completions', self._body,
                           {'Content-Type': 'application/json'})
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(response.read().decode())
        for line in response:
            if not line.startswith(b'data: {'):
                continue
            if json.loads(line[6:]).get('choices'):
                self.times.append(time.monotonic())

    def wait_for(self, pieces):
        while len(self.times) < pieces and self._thread.is_alive():
            time.sleep(0.001)

    def join(self):
        self._thread.join()
        if len(self.times) < 2:
            raise RuntimeError('a stream came to nothing')
        return self

    @property
    def first(self):
        return self.times[0] - self.began

    def gaps(self, begin, end):
        """Waits that overlap an interval."""
        return [after - before
                for before, after in zip(self.times, self.times[1:])
                if after > begin and before < end]


def measure(args, draw):
    def prompt(tokens):
        return [draw.randrange(*args.ids) for _ in range(tokens)]

    alone = Stream(args, prompt(args.prompt), 2).join().first
    streams = [Stream(args, prompt(32), args.tokens)
               for _ in range(args.streams)]
    for stream in streams:
        stream.wait_for(40)
    began = time.monotonic()
    usual = [gap for stream in streams for gap in stream.gaps(0, began)][5:]
    beside = Stream(args, prompt(args.prompt), 2).join()
    ended = beside.times[0]
    gaps = [gap for stream in streams for gap in stream.gaps(began, ended)]
    for stream in streams:
        stream.join()
    return {'usual_ms': statistics.median(usual) * 1e3,
            'longest_gap_ms': max(gaps) * 1e3,
            'gaps_meanwhile': len(gaps),
            'first_token_alone_s': alone,
            'first_token_beside_s': beside.first,
            'first_token_ratio': beside.first / alone}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--http', required=True, help='host:port')
    parser.add_argument('--model', required=True)
    parser.add_argument('--prompt', type=int, default=3800)
    parser.add_argument('--streams', type=int, default=4)
    parser.add_argument('--tokens', type=int, default=1000,
                        help='of each stream: enough to outlast the prompt')
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--ids', type=int, nargs=2, default=(1000, 40000),
                        help='prompts are drawn from these token ids')
    args = parser.parse_args()
    draw = random.Random(1)
    rounds = []
    for _ in range(args.rounds):
        rounds.append(measure(args, draw))
        print(json.dumps({key: round(value, 3)
                          for key, value in rounds[-1].items()}), flush=True)
    for key in rounds[0]:
        values = sorted(r[key] for r in rounds)
        print(f'{key:21} {statistics.median(values):9.3f} '
              f'({values[0]:.3f} to {values[-1]:.3f})')


if __name__ == '__main__':
    main()
