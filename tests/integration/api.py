"""A client of penstock.v1 that knows nothing but reflection."""

import dataclasses

import grpc
from google.protobuf import descriptor_pool
from google.protobuf import message_factory
from grpc_reflection.v1alpha import proto_reflection_descriptor_database

SERVICE = 'penstock.v1.Inference'
# Of any one call: far more than one takes, far less than a test run may.
DEADLINE_S = 120


@dataclasses.dataclass(frozen=True)
class Failure:
    """What a failed call said, with the details that every error carries."""

    code: grpc.StatusCode
    message: str
    reason: str
    field: str
    retryable: bool


class Api:

    def __init__(self, address, options=()):
        self.address = address
        self.channel = grpc.insecure_channel(
            address, options=[('grpc.use_local_subchannel_pool', 1), *options])
        self._database = (
            proto_reflection_descriptor_database.ProtoReflectionDescriptorDatabase(
                self.channel))
        self._pool = descriptor_pool.DescriptorPool(self._database)

    def learn(self):
        """Asks now for what is otherwise asked for when first needed: from now
        on the server may be away."""
        for name in ('StatusDetails', 'ErrorDetail'):
            self.message(name)
        self.request()
        self._method('Generate')

    def close(self):
        self.channel.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def services(self):
        return set(self._database.get_services())

    def message(self, name):
        """The class of a message of penstock.v1."""
        descriptor = self._pool.FindMessageTypeByName(f'penstock.v1.{name}')
        return message_factory.GetMessageClass(descriptor)

    def _method(self, name):
        service = self._pool.FindServiceByName(SERVICE)
        method = service.FindMethodByName(name)
        path = f'/{SERVICE}/{name}'
        response = message_factory.GetMessageClass(method.output_type)
        make = (self.channel.unary_stream if method.server_streaming
                else self.channel.unary_unary)
        return make(
            path,
            request_serializer=lambda m: m if isinstance(m, bytes)
            else m.SerializeToString(),
            response_deserializer=response.FromString)

    def request(self, **fields):
        """A GenerateRequest; nested messages are dictionaries."""
        return self.message('GenerateRequest')(**fields)

    def generate(self, request=None, metadata=None, timeout=DEADLINE_S,
                 **fields):
        """The call itself: an iterator of responses that can be cancelled."""
        if request is None:
            request = self.request(**fields)
        return self._method('Generate')(
            request, timeout=timeout, metadata=metadata)

    def answer(self, **fields):
        """All responses of one call, added up."""
        answer = Answer()
        for response in self.generate(**fields):
            answer.add(response)
        answer.check_finished()
        return answer

    def answers(self, **fields):
        """All answers of one call, by sample, and the prompt's
        log-probabilities."""
        answers = {}
        prompt = []
        for response in self.generate(**fields):
            frame = response.frame
            if frame.prompt.tokens:
                if frame.prompt.first_index != len(prompt) + 1:
                    raise AssertionError('a prompt token is missing or doubled')
                prompt += frame.prompt.tokens
            else:
                answers.setdefault(frame.sample, Answer()).add(response)
        for answer in answers.values():
            answer.check_finished()
        return [answers[sample] for sample in sorted(answers)], prompt

    def failure(self, **fields):
        """How a call that must fail does so."""
        try:
            for _ in self.generate(**fields):
                pass
        except grpc.RpcError as error:
            return self.describe(error)
        raise AssertionError('the call succeeded')

    def describe(self, error):
        details = self.message('StatusDetails')()
        for key, value in error.trailing_metadata() or ():
            if key == 'grpc-status-details-bin':
                details.ParseFromString(value)
        detail = self.message('ErrorDetail')()
        for any_message in details.details:
            any_message.Unpack(detail)
        enum = detail.DESCRIPTOR.fields_by_name['reason'].enum_type
        name = enum.values_by_number[detail.reason].name
        return Failure(error.code(), error.details(),
                       name.removeprefix('ERROR_REASON_'), detail.field,
                       detail.retryable)

    def call(self, name, **fields):
        """A unary call."""
        request = {
            'Tokenize': 'TokenizeRequest', 'Detokenize': 'DetokenizeRequest',
            'GetModelInfo': 'GetModelInfoRequest', 'Abort': 'AbortRequest',
        }[name]
        return self._method(name)(
            self.message(request)(**fields), timeout=DEADLINE_S)


class Answer:
    """Frames of one sample, checked for loss and doubling."""

    def __init__(self):
        self.ids = []
        self.logprobs = []
        self.text = ''
        self.last = None  # the frame that ended it
        self.placement = None
        self.request_id = ''

    def add(self, response):
        frame = response.frame
        if self.last is not None:
            raise AssertionError('a frame after the last one')
        if frame.first_index != len(self.ids):
            raise AssertionError(
                f'frame begins at {frame.first_index}, not {len(self.ids)}')
        if response.HasField('placement'):
            self.placement = response.placement
        self.request_id = response.request_id or self.request_id
        for token in frame.tokens:
            self.ids.append(token.id)
            self.text += token.text
            if token.HasField('logprobs'):
                self.logprobs.append(token.logprobs.logprob)
        self.text += frame.final_text
        if frame.finish:
            self.last = frame

    def check_finished(self):
        if self.last is None:
            raise AssertionError('the stream ended without a last frame')
