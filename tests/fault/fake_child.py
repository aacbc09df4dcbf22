"""A program that stands in for the media child: it speaks as the child does, and behaves as a test asks it to.

Run as the child is run (`python -I double.py FD`), so it sees nothing of this folder.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from typing import Any

from telecine.media.child.sandbox.lockdown import die_with_parent

SLEEPER = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"


class Child:
    def __init__(self, descriptor: int) -> None:
        die_with_parent(descriptor)
        self.channel = socket.socket(fileno=descriptor)
        self.lines = self.channel.makefile("rb")
        first = json.loads(self.lines.readline())
        self.order: dict[str, Any] = first["order"]
        self.files: dict[str, int] = first["files"]

    def say(self, **message: Any) -> None:
        self.channel.sendall(json.dumps(message).encode() + b"\n")

    # -- well behaved --------------------------------------------------------------------------------

    def echo(self) -> None:
        """Says everything back that it hears, until it hears nothing more; counts."""
        count = 0
        for line in self.lines:
            message = json.loads(line)
            if message == "enough":
                break
            count += 1
            self.say(echo=message)
        self.say(done=count)

    def look(self) -> None:
        """Where it is and what it has."""
        folder = os.listdir("/proc/self/fd")
        self.say(
            done={
                "files": sorted(int(name) for name in folder if os.path.exists(f"/proc/self/fd/{name}")),
                "channel": self.channel.fileno(),
                "passed": self.files,
                "environment": dict(os.environ),
                "folder": os.getcwd(),
                "session": os.getsid(0) == os.getpid(),
                "nice": os.nice(0),
                "isolated": sys.flags.isolated,
                "stdin": os.readlink("/proc/self/fd/0"),
                "parent": os.getppid(),
                "handlers": [signal.getsignal(number) == signal.SIG_DFL for number in (signal.SIGTERM, signal.SIGCHLD)],
            }
        )

    def copy(self) -> None:
        """Reads its source, by descriptor or by asking."""
        if "source" in self.files:
            data = os.pread(self.files["source"], 1 << 20, 0)
        else:
            data = b"".join(self.asked(start, 10) for start in range(0, self.order["size"], 10))
        self.say(done=data.decode())

    def asked(self, start: int, length: int) -> bytes:
        if not hasattr(self, "asks"):
            self.asks = socket.socket(fileno=self.files["ask"])
        self.asks.sendall(struct.pack(">QQ", start, length))
        replies = self.asks.makefile("rb")
        head = replies.read(8)
        if len(head) < 8:
            self.say(error={"code": "source_failed", "message": "no bytes came", "permanent": False})
            os._exit(1)
        return replies.read(struct.unpack(">Q", head)[0])

    def refuse(self) -> None:
        self.say(error=self.order["error"])
        sys.exit(1)

    # -- badly behaved -------------------------------------------------------------------------------

    def die(self) -> None:
        """Without a last word."""
        sys.stderr.write(self.order.get("printed", ""))
        sys.stderr.flush()
        if "signal" in self.order:
            os.kill(os.getpid(), self.order["signal"])
            time.sleep(60)
        os._exit(self.order.get("code", 0))

    def gorge(self) -> None:
        limit = self.order["limits"]["memory"]
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        self.say(began=True)
        held = []
        while True:
            held.append(bytearray(16 << 20))

    def burn(self) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (1, 2))
        while True:
            pass

    def hang(self) -> None:
        """Does not end by itself; has a child that does not, either, unless it is alone."""
        if self.order.get("stubborn"):
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        family = [os.getpid()]
        if not self.order.get("alone"):
            family.append(subprocess.Popen([sys.executable, "-I", "-c", SLEEPER]).pid)
        self.say(family=family)
        time.sleep(600)

    def linger(self) -> None:
        """Says its last word, and does not go."""
        self.say(done=os.getpid())
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)

    def babble(self) -> None:
        self.channel.sendall(self.order["text"].encode() + b"\n")
        time.sleep(600)


def main(arguments: list[str]) -> int:
    child = Child(int(arguments[0]))
    getattr(child, child.order["do"])()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
