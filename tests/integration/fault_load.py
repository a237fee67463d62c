"""Load whose right answers are known: every answer is compared with what an
undisturbed cluster said, also the part that came before an error."""

import collections
import dataclasses
import json
import random
import threading
import time
import traceback

import grpc
import requests

import cluster
from api import Answer
from api import Api

# A request that takes longer hangs.
DEADLINE_S = 60
# Between a failure and the next try: a router that is away is not to be asked
# all the time.
PAUSE_S = 0.5
MODEL = cluster.MODEL.stem
# A router that restarts is found again at once.
CHANNEL = (('grpc.initial_reconnect_backoff_ms', 100),
           ('grpc.min_reconnect_backoff_ms', 500),
           ('grpc.max_reconnect_backoff_ms', 500))


@dataclasses.dataclass(frozen=True)
class Case:
    """A request that always has the same answer."""

    prompt: tuple
    max_tokens: int
    seed: int
    sampling: tuple  # (name, value) pairs
    more: tuple = ()  # the same, of the request

    def grpc_fields(self):
        return {'ids': {'ids': self.prompt}, **dict(self.more),
                'sampling': {'seed': self.seed, **dict(self.sampling)},
                'stop': {'max_tokens': self.max_tokens, 'ignore_eos': True}}

    def http_body(self):
        sampling = dict(self.sampling)
        if sampling.get('mirostat'):
            sampling['mirostat'] = 2  # HTTP names the version
        return {'model': MODEL, 'prompt': list(self.prompt), 'stream': True,
                'max_tokens': self.max_tokens, 'ignore_eos': True,
                'seed': self.seed, 'return_token_ids': True, **sampling,
                **dict(self.more)}


@dataclasses.dataclass
class Said:
    """One of a request's answers, or what came of it."""

    ids: list = dataclasses.field(default_factory=list)
    text: str = ''


# All kinds of state that has to be right where a request goes on: none, draws,
# counts of tokens, and mirostat's own.
SAMPLING = (
    (('temperature', 0),),
    (('temperature', 0.8),),
    (('temperature', 1), ('repetition_penalty', 1.3), ('top_p', 0.9)),
    (('temperature', 0.9), ('mirostat', True)),
)


def make_cases(rng):
    """Prompts with and without common beginnings; greedy and drawn."""
    head = [rng.randrange(1000, 40000) for _ in range(64)]
    cases = []
    for i, length in enumerate((5, 14, 20, 33, 48, 64, 80, 96, 130, 160)):
        own = [rng.randrange(1000, 40000) for _ in range(length)]
        prompt = own if i % 3 else head[:length // 2] + own[length // 2:]
        for sampling in SAMPLING[i % 2::2]:
            cases.append(Case(tuple(prompt), rng.randrange(16, 48),
                              rng.randrange(1, 1 << 30), sampling))
    # Several answers of one prompt, and the better of two.
    for more in ((('n', 2),), (('best_of', 2),)):
        cases.append(Case(tuple(head), 20, 7, SAMPLING[1], more))
    return cases


def make_long_cases(rng):
    """What together fills a KV pool."""
    prompts = [[rng.randrange(1000, 40000) for _ in range(length)]
               for length in (420, 540, 660)]
    return [Case(tuple(prompt), 120, 1, SAMPLING[0]) for prompt in prompts]


@dataclasses.dataclass
class Outcome:
    """How one request went."""

    how: str  # 'grpc', 'http'
    begin: float
    end: float = 0
    tokens: int = 0
    reason: str = ''  # 'ok', 'left' by the client, else the error's name
    message: str = ''
    wrong: str = ''  # what no fault may do
    excuse: str | None = None  # of a failure, once it is judged

    def seconds(self):
        return self.end - self.begin


def compare(said, right, whole):
    """What is wrong with answers, or with their beginnings; '' if nothing is.
    Both are {sample: Said}."""
    if not set(said) <= set(right) or whole and set(said) != set(right):
        return f'answers {sorted(said)} instead of {sorted(right)}'
    for sample, got in said.items():
        wanted = right[sample]
        ids, text = wanted.ids, wanted.text
        if not whole:
            ids, text = ids[:len(got.ids)], text[:len(got.text)]
        if (got.ids, got.text) != (ids, text):
            return f'answer {sample} is {got} instead of {wanted}'
    return ''


def ask_grpc(api, case, right, leave_after=None, deadline=DEADLINE_S):
    """(Outcome, {sample: Said}) of one call."""
    outcome = Outcome('grpc', time.monotonic())
    answers = collections.defaultdict(Answer)
    try:
        call = api.generate(timeout=deadline, **case.grpc_fields())
        for response in call:
            answers[response.frame.sample].add(response)
            outcome.tokens += len(response.frame.tokens)
            if leave_after is not None and outcome.tokens >= leave_after:
                call.cancel()
        for answer in answers.values():
            answer.check_finished()
        outcome.reason = 'ok'
    except grpc.RpcError as error:
        failure = api.describe(error)
        outcome.message = failure.message
        if leave_after is not None and error.code() == (
                grpc.StatusCode.CANCELLED):
            outcome.reason = 'left'
        elif failure.reason != 'UNKNOWN':
            outcome.reason = failure.reason
        else:  # not ours: the connection's, or the deadline's
            outcome.reason = f'grpc {error.code().name}'
    except AssertionError as error:
        outcome.wrong = str(error)
    outcome.end = time.monotonic()
    said = {sample: Said(answer.ids, answer.text)
            for sample, answer in answers.items()}
    if right is not None:
        outcome.wrong = outcome.wrong or compare(
            said, right, outcome.reason == 'ok')
    return outcome, said


def ask_http(session, address, case, right):
    outcome = Outcome('http', time.monotonic())
    said = collections.defaultdict(Said)
    try:
        with session.post(f'http://{address}/v1/completions',
                          json=case.http_body(), stream=True,
                          timeout=(5, DEADLINE_S)) as response:
            if response.status_code != 200:
                error = response.json()['error']
                outcome.reason = str(error['code'] or error['type']).upper()
                outcome.message = error['message']
            else:
                outcome.reason, outcome.message = _read_events(response, said)
    except requests.RequestException as error:
        outcome.reason = 'http connection'
        outcome.message = repr(error)
    outcome.end = time.monotonic()
    outcome.tokens = sum(len(each.ids) for each in said.values())
    outcome.wrong = compare(said, right, outcome.reason == 'ok')
    return outcome


def _read_events(response, said):
    """(reason, message) of a stream; what it says is added to `said`."""
    for line in response.iter_lines():
        if not line.startswith(b'data: '):
            continue
        data = line[len(b'data: '):]
        if data == b'[DONE]':
            return 'ok', ''
        event = json.loads(data)
        if 'error' in event:
            error = event['error']
            return str(error['code'] or error['type']).upper(), error['message']
        for choice in event['choices']:
            answer = said[choice['index']]
            answer.ids += choice.get('token_ids') or []
            answer.text += choice['text']
    return 'http connection', 'the stream ended without [DONE]'


class Load:
    """Clients that ask one request after another until they are stopped. Made
    while the router is there."""

    def __init__(self, router, cases, long_cases, right, seed, grpc_streams,
                 http_streams):
        self._router = router
        self._cases = cases
        self._long_cases = long_cases
        self._right = right
        self._lock = threading.Lock()
        self._outcomes = []  # guarded by the lock
        self._broken = []  # what ended a client; guarded by the lock
        self._stop = threading.Event()
        self._apis = [Api(router.grpc, CHANNEL) for _ in range(4)]
        for api in self._apis:
            api.learn()
        self._threads = []
        for i in range(grpc_streams):
            self._start(self._grpc_client, self._apis[i % len(self._apis)],
                        random.Random(f'{seed} grpc {i}'))
        for i in range(http_streams):
            self._start(self._http_client, random.Random(f'{seed} http {i}'))

    def burst(self):
        """All long requests at once, beside the rest."""
        for case in self._long_cases:
            self._start(self._long_request, case)

    def stop(self):
        """Ends the load; returns how many clients hang, what broke one, and all
        outcomes."""
        self._stop.set()
        deadline = time.monotonic() + DEADLINE_S + 30
        for thread in self._threads:
            thread.join(max(0, deadline - time.monotonic()))
        hung = sum(thread.is_alive() for thread in self._threads)
        for api in self._apis:
            api.close()
        with self._lock:
            return hung, list(self._broken), list(self._outcomes)

    def _start(self, client, *arguments):
        def run():
            try:
                client(*arguments)
            except Exception:  # pylint: disable=broad-except
                with self._lock:
                    self._broken.append(traceback.format_exc())
        self._threads.append(threading.Thread(target=run, daemon=True))
        self._threads[-1].start()

    def _note(self, outcome):
        with self._lock:
            self._outcomes.append(outcome)
        if outcome.reason not in ('ok', 'left'):
            self._stop.wait(PAUSE_S)

    def _grpc_client(self, api, rng):
        while not self._stop.is_set():
            case = rng.choice(self._cases)
            leave = rng.randrange(1, 16) if rng.random() < 0.1 else None
            self._note(ask_grpc(api, case, self._right[case], leave)[0])

    def _http_client(self, rng):
        with requests.Session() as session:
            while not self._stop.is_set():
                case = rng.choice(self._cases)
                self._note(ask_http(session, self._router.http, case,
                                    self._right[case]))

    def _long_request(self, case):
        self._note(ask_grpc(self._apis[0], case, self._right[case])[0])


def record(api, cases):
    """{case: {sample: Said}}, of a cluster that nobody disturbs."""
    right = {}
    threads = []
    failures = []

    def ask(part):
        for case in part:
            outcome, right[case] = ask_grpc(api, case, None)
            if outcome.reason != 'ok' or outcome.wrong:
                failures.append(outcome)

    for i in range(4):
        threads.append(threading.Thread(target=ask, args=(cases[i::4],)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    if failures:
        raise AssertionError(f'undisturbed requests failed: {failures}')
    return right
