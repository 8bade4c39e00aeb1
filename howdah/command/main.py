# SPDX-License-Identifier: Apache-2.0
# PYTHON_ARGCOMPLETE_OK
"""The ``howdah`` command: parse, dispatch, and turn errors into one clear message and an exit code.

``EXIT_CODES`` of howdah/command/parser.py has the codes.
"""

from __future__ import annotations

import argparse
import codecs
import contextlib
import errno
import io
import os
import re
import resource
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from howdah import __version__
from howdah.command.answer import answer_error
from howdah.command.commands import add_commands
from howdah.command.interruption import interruptible, what_is_kept
from howdah.command.parser import TopParser, WrongUsageError, describe, exit_codes
from howdah.errors import LARGER_FILES, ExitCode, HowdahError, explain, file_of_error, remedy
from howdah.layout import write_stderr
from howdah.unloaded import collect_rarely, leave_pandas_out

_ENOUGH_BYTES = 1 << 30  # of address space; the libraries of tables alone take 700 MiB
_MET = (MemoryError, OSError, ImportError)
_NO_MAPPING = "failed to map segment"  # of ld.so, where memory is limited
_UNENCODABLE = "howdah-unencodable"

_HOW = """\
Start with:
  howdah doctor                    what is missing here
  howdah run quick                 a first experiment
  howdah new mine && howdah run mine.yaml
  howdah COMMAND --help            the arguments of a command
"""


def build_parser(words: Collection[str] | None = None) -> argparse.ArgumentParser:
    """The parser of every command, or of those among the words of a command line; of the others it knows the names."""
    parser = TopParser(
        prog="howdah",
        usage="howdah COMMAND ...",
        description="Measure how TCP starts up on long fat paths, on real kernels in virtual time.",
        epilog=f"{_HOW}\nExit codes:\n{exit_codes()}",
    )
    parser.add_argument("--version", action="version", version=f"howdah {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="howdah")
    add_commands(commands, words)
    describe(parser)
    return parser


def _complete() -> None:
    """Answer a shell whose user has pressed TAB, and end the process."""
    from howdah.command.completing import complete  # it loads what knows the names of profiles, kernels and runs

    complete(build_parser(re.findall(r"[\w-]+", os.environ.get("COMP_LINE", ""))))


def main(arguments: list[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error(_UNENCODABLE, _unencodable)
        sys.stdout.reconfigure(errors=_UNENCODABLE)
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    words = sys.argv[1:] if arguments is None else arguments
    try:
        with interruptible():
            try:
                options = build_parser(words).parse_args(arguments)
            except HowdahError as error:  # a package adds what does not work
                return _end(argparse.Namespace(json="--json" in words), error)
            except KeyboardInterrupt:  # a command takes a moment to load
                return _interrupted("nothing was begun", as_data="--json" in words)
            except (
                *_MET,
                OverflowError,
            ) as error:  # the latter: a clock far in the future
                return _end(argparse.Namespace(json="--json" in words), _in_words(error))
            return _execute(options)
    except SystemExit as error:  # help, the version, wrong usage
        if isinstance(error, WrongUsageError) and "--json" in words:
            _answer(error.what, error.where, error.hint)
        with _reader_may_leave():
            sys.stdout.flush()
        raise


def _unencodable(error: UnicodeError) -> tuple[str | bytes, int]:
    """A file's name may be any bytes, which are printed as they are; what an output of ASCII lacks, as ``\\u2713``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    one = UnicodeEncodeError(error.encoding, error.object, error.start, error.start + 1, error.reason)
    try:
        return codecs.lookup_error("surrogateescape")(one)
    except UnicodeEncodeError:
        return codecs.lookup_error("backslashreplace")(one)


def program() -> int:
    """The installed command: ``main`` in a process of its own."""
    collect_rarely()
    leave_pandas_out()
    _use_own_path()
    _open_output()
    _tell_little_memory()
    return main()


def _use_own_path() -> None:
    """Programs come from no directory that depends on where the user stands: a stranger's may hold a ``git``."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    if any(not os.path.isabs(folder) for folder in folders):  # noqa: PTH117
        os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, folders)) or os.defpath.lstrip(":")


def _open_output() -> None:
    """What was started with its output closed has one that goes nowhere."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _tell_little_memory() -> None:
    """A library in C that cannot have its memory ends the process with words of its own, or none."""
    most_bytes = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= most_bytes < _ENOUGH_BYTES:
        most_mib = most_bytes >> 20
        write_stderr(f"howdah: {most_mib} MiB of address space may be too little; raise the limit (ulimit -v)\n")


def _execute(options: argparse.Namespace) -> int:
    """Run the command; its exit code. An error is one line, or an object where JSON is asked for."""
    try:
        code: int = 0
        with _reader_may_leave():
            code = options.execute(options)
            sys.stdout.flush()
        return code
    except HowdahError as error:
        return _end(options, error)
    except KeyboardInterrupt:
        return _interrupted(what_is_kept(options), as_data=getattr(options, "json", False))
    except _MET as error:
        return _end(options, _in_words(error))


def _in_words(error: Exception) -> HowdahError:
    """What a command met while it was loaded or ran: of the system's, or a library that is missing."""
    if isinstance(error, MemoryError) or _NO_MAPPING in str(error):
        hint = "Close other programs, raise the limit (ulimit -v), or give --jobs 1."
        return HowdahError("there is not enough memory", hint=hint)
    if isinstance(error, OverflowError):
        return HowdahError(f"the clock cannot be read: {error}", hint="Set it right (date).")
    if isinstance(error, ImportError) and error.name in sys.stdlib_module_names:
        lacking = f"this Python was built without its module {(error.name or '').lstrip('_')}, which howdah needs"
        return HowdahError(lacking, where=sys.executable, hint="Install howdah with another Python.")
    if not isinstance(error, OSError):
        return HowdahError(f"howdah cannot be loaded: {error}", hint="Install it again.")
    return HowdahError(explain(error), where=file_of_error(error), hint=remedy(error))


def _end(options: argparse.Namespace, error: HowdahError) -> int:
    """Say what went wrong; the exit code."""
    if os.strerror(errno.EFBIG) in error.what:  # no other place would help
        error.hint = LARGER_FILES
    if getattr(options, "json", False):
        _answer(error.what, error.where, error.hint)
    write_stderr(f"howdah: {error}\n")
    return error.exit_code


def _interrupted(kept: str, *, as_data: bool) -> int:
    """Say what there is after Ctrl-C; the exit code."""
    if as_data:
        _answer("interrupted", None, kept)
    write_stderr(f"howdah: interrupted; {kept}\n")
    return ExitCode.INTERRUPTED


def _answer(what: str, where: str | None, hint: str | None) -> None:
    """Print the object of an error. An output that is full or closed hears nothing: standard error has it, too."""
    with contextlib.suppress(OSError), _reader_may_leave():
        answer_error(what, where, hint)
        sys.stdout.flush()


@contextlib.contextmanager
def _reader_may_leave() -> Iterator[None]:
    """Where the reader of the output has left, nothing more is said, not even when Python ends."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(program())
