"""A TCP proxy that can be cut, or held as a silent network would be."""

import socket
import struct
import threading


class _Connection:
    """One forwarded connection. Its two threads own the sockets: whichever ends
    last closes them."""

    def __init__(self, near, far, flows, rate):
        self._ends = (near, far)
        self._flows = flows
        self._rate = rate
        self._lock = threading.Lock()
        self._forwarding = 2  # guarded by the lock
        self._pace = threading.Event()  # set: nothing is worth waiting for
        for end in self._ends:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def start(self):
        for source, sink in (self._ends, self._ends[::-1]):
            threading.Thread(
                target=self._forward, args=(source, sink), daemon=True).start()

    def open(self):
        with self._lock:
            return self._forwarding == 2

    def cut(self):
        self._pace.set()
        for end in self._ends:
            try:
                # What was not sent yet is dropped.
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack('ii', 1, 0))
                end.shutdown(socket.SHUT_RDWR)  # wakes the threads
            except OSError:
                pass  # closed, or closing

    def _forward(self, source, sink):
        try:
            while data := source.recv(1 << 16):
                self._flows.wait()
                sink.sendall(data)
                if self._rate:
                    self._pace.wait(len(data) / self._rate)
        except OSError:
            pass
        with self._lock:
            self._forwarding -= 1
            last = self._forwarding == 0
        if last:
            for end in self._ends:
                end.close()
        else:
            self._shut()

    def _shut(self):
        for end in self._ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class TcpProxy:
    """Forwards every connection to `listen` on to `target`, at most `rate`
    bytes a second each way if it is given; addresses are 'host:port'.
    Thread-safe."""

    def __init__(self, listen, target, rate=None):
        self._rate = rate
        self.address = listen
        self._target = self._split(target)
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._connections = []  # guarded by the lock
        self._listener = socket.create_server(self._split(listen), backlog=64)
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def cut(self):
        """Breaks every connection; new ones are taken at once. Returns how
        many there were."""
        with self._lock:
            connections, self._connections = self._connections, []
        live = [each for each in connections if each.open()]
        for connection in live:
            connection.cut()
        return len(live)

    def hold(self):
        """From now on nothing passes, and nobody is told."""
        self._flows.clear()

    def release(self):
        self._flows.set()

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._accepting.join(10)
        self._listener.close()
        self.cut()
        self.release()

    @staticmethod
    def _split(address):
        host, port = address.rsplit(':', 1)
        return host, int(port)

    def _accept(self):
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._target, timeout=5)
                far.settimeout(None)
            except OSError:
                near.close()  # as if nobody listened
                continue
            connection = _Connection(near, far, self._flows, self._rate)
            with self._lock:
                self._connections = [
                    each for each in self._connections if each.open()]
                self._connections.append(connection)
            connection.start()
