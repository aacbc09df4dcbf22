"""In the fork server: load a program once, and fork for whoever asks. What is forked runs it as if it had been started.

    python -I -m telecine.worker.media.fork_child PROGRAM FD

    asked:   {"folder", "nice"} and the descriptors of line, output, report and files
    report:  the child's number and a handle to signal it by, at once; {"status", "cpu", "rss"} when it has ended

One thread, and nothing of any source: what a child gets from here is the same for all. A child knows its line as 3, its
files as 4 and on, in the order in which they were given.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import json
import os
import resource
import runpy
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from telecine.worker.processes.supervisor import die_with

LINE = 3
MAX_ASKED = 1 << 16  # bytes: a path, and a number
MAX_GIVEN = 16  # descriptors
_MIN_GIVEN = 3  # line, output and report
FORK_SERVER, CHILD = "media-forker", "telecine-media"  # as `ps` and `top` show them
_HIGH = 100  # above all that a child is given

Main = Callable[[list[str]], int]


def main(arguments: Sequence[str]) -> None:
    program, descriptor = arguments
    die_with(os.getppid())
    _set_process_name(FORK_SERVER)
    # By the lowest number that is free: that of a worker with many files may be above all that a child closes.
    with socket.socket(fileno=int(descriptor)) as line:
        asked = line.dup()
    run = _loaded(program)
    gc.collect()
    gc.freeze()  # pages that nobody writes to stay shared
    _serve(asked, run)


def _set_process_name(name: str) -> None:
    with suppress(OSError), open("/proc/self/comm", "w") as file:
        file.write(name)


def _loaded(program: str) -> Main:
    """The `main` of a module or of a file, with all that it says it will need."""
    if program.endswith(".py"):
        return runpy.run_path(program, run_name="nursed")["main"]  # type: ignore[no-any-return]
    module = import_module(f"{program}.__main__")
    module.preload()
    return module.main  # type: ignore[no-any-return]


def _serve(asked: socket.socket, run: Main) -> None:
    """Until nobody can ask any more and the last child has ended."""
    woken, wake = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    reports: dict[int, socket.socket] = {}
    news = select.poll()  # not `select`, which knows no descriptor above 1023
    news.register(woken, select.POLLIN)
    news.register(asked, select.POLLIN)
    is_asked = True
    while is_asked or reports:
        ready = {descriptor for descriptor, _ in news.poll()}
        if woken in ready:
            with suppress(BlockingIOError):
                os.read(woken, 4_096)
            _reap_ended(reports)
        if asked.fileno() in ready:
            request, given, _, _ = socket.recv_fds(asked, MAX_ASKED, MAX_GIVEN)
            if request:
                _fork(json.loads(request), given, reports, run)
            else:
                news.unregister(asked)
                is_asked = False


def _fork(request: dict[str, Any], given: list[int], reports: dict[int, socket.socket], run: Main) -> None:
    """Whatever goes wrong is between this child and who asked for it: the others live on."""
    if len(given) < _MIN_GIVEN:  # there was no room for them here
        for one in given:
            os.close(one)
        return
    report = socket.socket(fileno=given.pop(2))
    fork_server = os.getpid()
    pid = 0
    try:
        pid = os.fork()  # noqa: TID251 - a fork of ourselves, before any thread and any source
        if pid == 0:
            _run_child(fork_server, request, given, run)
        handle = os.pidfd_open(pid)
    except OSError as error:
        if pid:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        with report, suppress(OSError):
            report.send(str(error).encode())
    else:
        reports[pid] = report
        with suppress(OSError):
            socket.send_fds(report, [str(pid).encode()], [handle])
        os.close(handle)
    finally:
        for one in given:
            os.close(one)


def _reap_ended(reports: dict[int, socket.socket]) -> None:
    """Tell how each ended, after whoever it left in its group was ended, too."""
    while reports and (found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)) is not None:
        with suppress(OSError):
            os.killpg(found.si_pid, signal.SIGKILL)
        pid, status, used = os.wait4(found.si_pid, 0)
        with reports.pop(pid) as report, suppress(OSError):
            report.send(
                json.dumps({"status": status, "cpu": used.ru_utime + used.ru_stime, "rss": used.ru_maxrss}).encode()
            )


def _run_child(fork_server: int, request: dict[str, Any], given: list[int], run: Main) -> NoReturn:
    """From here on it is a child like any other: a folder, its descriptors, and nothing that is not its own."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        die_with(fork_server)
        _set_process_name(CHILD)
        _place(given)
        _settle_in(**request)
        code = run([str(LINE)])
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
            ctypes.CDLL(None).fflush(None)  # what libraries printed
        os._exit(code)


def _settle_in(folder: str, nice: int) -> None:
    os.chdir(folder)
    os.environ["TMPDIR"] = folder
    if nice:
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, nice)


def _place(given: Sequence[int]) -> None:
    """Line, output and files to where the child knows them; all else is closed."""
    line, output, *files = (fcntl.fcntl(one, fcntl.F_DUPFD, _HIGH) for one in given)
    for one, place in ((output, 1), (output, 2), (line, LINE), *((one, LINE + 1 + n) for n, one in enumerate(files))):
        os.dup2(one, place)
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    os.closerange(LINE + 1 + len(files), min(most, 1 << 16))


if __name__ == "__main__":
    main(sys.argv[1:])
