"""A `fovea serve` under test, and the requests for it."""
import atexit
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import urllib.parse


def fail(why):
    sys.exit(f'{os.path.relpath(sys.argv[0])}: {why}')


class Server:
    """A server that runs until stop(). `log` collects its log lines."""

    def __init__(self, arguments=(), under=(), descriptors=None):
        def limit():
            if descriptors:
                resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
        self.process = subprocess.Popen(
            [*under, os.environ['FOVEA'], 'serve', '--port', '0', '--log-format', 'plain', '-b',
             '2', *arguments], stderr=subprocess.PIPE, text=True, preexec_fn=limit,
            start_new_session=True)
        atexit.register(self.end)
        self.log = []
        for line in self.process.stderr:
            self.log.append(line)
            found = re.search(r'listening on http://127\.0\.0\.1:(\d+)', line)
            if found:
                self.port = int(found[1])
                break
        else:
            fail('the server did not start: ' + ''.join(self.log))
        threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True).start()

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.process.pid}/fd'))

    def resident(self):
        """The resident memory in MiB."""
        with open(f'/proc/{self.process.pid}/statm') as file:
            return int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE') / 2**20

    def reset_peak(self):
        with open(f'/proc/{self.process.pid}/clear_refs', 'w') as file:
            file.write('5')

    def peak(self):
        """The peak of the memory since reset_peak(), in MiB."""
        with open(f'/proc/{self.process.pid}/status') as file:
            return int(re.search(r'VmHWM:\s+(\d+) kB', file.read())[1]) / 1024

    def connections_cpu(self):
        """The processor time of the thread of the connections, in seconds."""
        tasks = f'/proc/{self.process.pid}/task'
        for task in os.listdir(tasks):
            with open(f'{tasks}/{task}/comm') as file:
                if file.read() != 'connections\n':
                    continue
            with open(f'{tasks}/{task}/schedstat') as file:
                return int(file.read().split()[0]) / 1e9
        fail('no thread is named connections')

    def cpu_seconds(self):
        with open(f'/proc/{self.process.pid}/stat') as file:
            fields = file.read().rpartition(')')[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')

    def alive(self):
        if self.process.poll() is not None:
            fail(f'the server ended with {self.process.returncode}: {"".join(self.log[-20:])}')

    def end(self):
        """Ends the server immediately after a failure, with the program that traces it."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=40)


def request(text, path='/translate'):
    body = urllib.parse.urlencode({'q': text, 'source': 'en', 'target': 'de'})
    return (f'POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n'
            'Content-Type: application/x-www-form-urlencoded\r\n'
            f'Content-Length: {len(body)}\r\n\r\n{body}').encode()


def json_request(path, body, headers=''):
    """`body` is JSON text, or a value to convert to JSON."""
    data = (body if isinstance(body, str) else json.dumps(body)).encode('utf-8', 'surrogateescape')
    return (f'POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}'
            f'Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n').encode() + data


def get(path, headers=''):
    return f'GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}\r\n'.encode()


def connect(port):
    return socket.create_connection(('127.0.0.1', port), timeout=60)


def read_all(s):
    answer = b''
    while part := s.recv(65536):
        answer += part
    return answer


def exchange(port, data):
    """The complete answer; b'' if there is none."""
    with connect(port) as s:
        s.sendall(data)
        return read_all(s)


def status_of(answer):
    """The status of an answer; 0 if there is none."""
    return int(answer[9:12]) if answer.startswith(b'HTTP/1.1 ') else 0


def body_of(answer):
    return answer.partition(b'\r\n\r\n')[2]
