#!/usr/bin/env python3
"""What a router's relay costs in CPU: gRPC beside a plain gRPC echo of as many
messages in the same run, and the OpenAI face, with workers that cost nothing.

CPU is the router process's alone, user and system, from /proc. Wall time is
only shown: clients and workers share the machine."""

import argparse
import contextlib
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
TICKS = os.sysconf('SC_CLK_TCK')


def cpu_seconds(pid):
    fields = pathlib.Path(f'/proc/{pid}/stat').read_text().rsplit(')', 1)[1]
    user, system = fields.split()[11:13]
    return (int(user) + int(system)) / TICKS


@contextlib.contextmanager
def running(command, keep_log=False):
    """The process and the first line that it printed."""
    process = subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, text=True,
        stderr=None if keep_log else subprocess.DEVNULL)
    try:
        line = process.stdout.readline().strip()
        if not line:
            raise RuntimeError(f'{command[0]} ended: {process.wait()}')
        yield process.pid, line
    finally:
        process.terminate()
        process.wait()


class Bench:
    def __init__(self, args):
        self.args = args
        self.peer = args.bin / 'relay_peer'
        self.model = pathlib.Path(args.model)

    def output(self, *command):
        done = subprocess.run([str(word) for word in command], check=True,
                              stdout=subprocess.PIPE, text=True)
        return done.stdout

    def router(self):
        return running([
            self.args.bin / 'penstock-router', '--model', self.model,
            '--model-name', 'm', '--listen', '127.0.0.1:0', '--http-listen',
            '127.0.0.1:0', '--metrics-listen', '', '--max-concurrent-requests',
            4096])

    def workers(self, address, tick_us):
        return running([self.peer, 'workers', '--router', address, '--model',
                        self.model, '--tick-us', tick_us])

    def echo(self, tick_us, tokens):
        with running([self.peer, 'echo-server']) as (pid, address):
            before = cpu_seconds(pid)
            self.output(self.peer, 'echo-client', '--server', address,
                        '--streams', self.args.streams, '--messages', tokens,
                        '--tick-us', tick_us)
            return cpu_seconds(pid) - before

    def grpc(self, tick_us, tokens, length):
        with self.router() as (pid, line):
            address = json.loads(line)['grpc']
            with self.workers(address, tick_us):
                before = cpu_seconds(pid)
                report = json.loads(self.output(
                    self.args.bin / 'penstock', 'bench', 'serve', '--server',
                    address, '--concurrency', self.args.streams, '--requests',
                    tokens // length, '--input-len', 200, '--output-len',
                    length, '--json'))
                return cpu_seconds(pid) - before, report

    def http(self, tick_us, streams, requests, length, chars):
        with self.router() as (pid, line):
            addresses = json.loads(line)
            with self.workers(addresses['grpc'], tick_us):
                before = cpu_seconds(pid)
                report = json.loads(self.output(
                    self.peer, 'sse-client', '--port',
                    addresses['http'].rsplit(':', 1)[1], '--model', 'm',
                    '--streams', streams, '--requests', requests, '--tokens',
                    length, '--prompt-chars', chars))
                return cpu_seconds(pid) - before, report


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bin', type=pathlib.Path,
                        default=ROOT / 'build/release/bin')
    parser.add_argument(
        '--model', default=ROOT / 'models/SmolLM2-135M-Instruct.Q4_1.gguf')
    parser.add_argument('--streams', type=int, default=64)
    parser.add_argument('--tokens', type=int, default=1_000_000,
                        help='over gRPC, and half as many over HTTP')
    parser.add_argument('--pairs', type=int, default=3,
                        help='of gRPC relay and echo')
    parser.add_argument('--json', action='store_true')
    return parser.parse_args()


def main():
    args = parse_args()
    bench = Bench(args)
    results = {}
    pairs = []
    for _ in range(args.pairs):
        echo = bench.echo(1000, args.tokens)
        relay, _ = bench.grpc(1000, args.tokens, 1000)
        pairs.append((echo, relay))
    results['grpc'] = {
        'streams': args.streams,
        'tokens': args.tokens,
        'echo_cpu_s': [pair[0] for pair in pairs],
        'relay_cpu_s': [pair[1] for pair in pairs],
        'ratio': statistics.median(relay / echo for echo, relay in pairs),
    }
    for tick_ms in (1, 10):
        length = 500
        requests = max(args.streams, args.tokens // 2 // length // tick_ms)
        cpu, report = bench.http(tick_ms * 1000, args.streams, requests, length,
                                 200)
        results[f'http_{tick_ms}ms'] = {
            'tokens': report['tokens'], 'cpu_s': cpu,
            'tokens_per_cpu_s': report['tokens'] / cpu}
    cpu, report = bench.http(1000, 1, 200, 2, 200)
    results['http_one_stream'] = {
        'first_token_p50_ms': report['first_token_p50_ms']}
    requests = 10_000
    cpu, report = bench.http(1000, 32, requests, 1, 800)
    results['http_requests'] = {
        'requests': requests, 'cpu_s': cpu, 'requests_per_cpu_s':
        requests / cpu}
    if args.json:
        print(json.dumps(results))
        return
    grpc = results['grpc']
    print(f'gRPC, {args.streams} streams, 1 ms ticks, CPU s for {args.tokens} '
          'tokens, in turn:')
    for echo, relay in pairs:
        print(f'  echo {echo:6.2f}  relay {relay:6.2f}  {relay / echo:.2f}x')
    print(f'  median ratio {grpc["ratio"]:.2f}')
    for tick_ms in (1, 10):
        row = results[f'http_{tick_ms}ms']
        print(f'HTTP, {tick_ms} ms ticks: {row["tokens"]} tokens, '
              f'{row["cpu_s"]:.2f} CPU s, '
              f'{row["tokens_per_cpu_s"]:,.0f} tokens a CPU second')
    print('HTTP, one stream: first token after '
          f'{results["http_one_stream"]["first_token_p50_ms"]:.2f} ms (p50), '
          'worker and client included')
    row = results['http_requests']
    print(f'HTTP, 800-character prompts, 1 token: '
          f'{row["requests_per_cpu_s"]:,.0f} requests a CPU second')


if __name__ == '__main__':
    sys.exit(main())
