"""A terminal for programs that draw: a pseudo terminal, and the screen as a person would see it."""
import fcntl
import os
import pty
import select
import struct
import termios
import time

import pyte


class Terminal:
    def __init__(self, command, columns=140, rows=44, env=None):
        self.raw = b""
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._status = None
        self._pid, self._fd = pty.fork()
        if self._pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.execve(command[0], [str(part) for part in command], {**(env or os.environ), "TERM": "xterm-256color"})
            finally:
                os._exit(127)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._status is None:
            os.kill(self._pid, 9)
            os.waitpid(self._pid, 0)
        os.close(self._fd)

    @property
    def received(self):
        return len(self.raw)

    def resize(self, columns, rows):
        self._screen.resize(rows, columns)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def press(self, keys):
        os.write(self._fd, keys.encode())
        self.settle(0.2)  # as a person would: one key after the other

    def settle(self, seconds):
        """Takes what comes in so many seconds. False: the program has closed the terminal."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if not select.select([self._fd], [], [], left)[0]:
                continue
            try:
                part = os.read(self._fd, 65536)
            except OSError:
                return False
            if not part:
                return False
            self.raw += part
            self._stream.feed(part)
        return True

    def be_quiet(self, seconds=600):
        """Returns when nothing has come for a second."""
        end = time.monotonic() + seconds
        sent = None
        while sent != self.received:
            assert time.monotonic() < end, "never stands still:\n" + self.text()
            sent = self.received
            self.settle(1)

    def until(self, holds, seconds=600):
        end = time.monotonic() + seconds
        while not self._holds(holds):
            assert time.monotonic() < end and self.settle(0.2), "never seen on this screen:\n" + self.text()

    @staticmethod
    def _holds(condition):
        try:
            return condition()
        except StopIteration:  # the row looked for is not there yet
            return False

    def lines(self):
        return self._screen.display

    def text(self):
        return "\n".join(self.lines())

    def shows(self, text):
        return text in self.text()

    def exit_code(self, seconds=600):
        end = time.monotonic() + seconds
        while self.settle(0.2) and time.monotonic() < end:
            pass
        self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status
