# SPDX-License-Identifier: Apache-2.0
# PYTHON_ARGCOMPLETE_OK
"""The ``howdah`` command: parse, dispatch, and turn errors into one clear message and an exit code.

The exit codes are ``EXIT_CODES`` in howdah/command/parser.py.
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
from howdah.command.interruption import interruptible, text_after_interruption
from howdah.command.parser import TopParser, WrongUsageError, describe, exit_codes
from howdah.errors import LARGER_FILES, ExitCode, HowdahError, explain, file_of_error, remedy, shorter
from howdah.layout import write_stderr
from howdah.unloaded import collect_rarely, leave_pandas_out

_ENOUGH_BYTES = 1 << 30  # enough address space; the libraries for tables alone take 700 MiB
_SYSTEM_ERRORS = (MemoryError, OSError, ImportError)
_NO_MAPPING = "failed to map segment"  # ld.so's message where memory is limited
_UNENCODABLE = "howdah-unencodable"

_HOW = """\
Start with:
  howdah doctor                    what is missing here
  howdah run quick                 a first experiment
  howdah new mine && howdah run mine.yaml
  howdah COMMAND --help            the arguments of a command
"""


def build_parser(words: Collection[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser of all commands. If ``words`` of a command line are given, only the commands among them get
    their arguments."""
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
    """Answer a completion request of the shell and end the process."""
    from howdah.command.completing import complete  # slow: loads profiles, kernels and runs

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
            except HowdahError as error:  # a package's command cannot be loaded
                return _report_error(argparse.Namespace(json="--json" in words), error)
            except KeyboardInterrupt:  # while the command's module loads
                return report_interruption("nothing was begun", as_data="--json" in words)
            except (
                *_SYSTEM_ERRORS,
                OverflowError,
            ) as error:  # OverflowError: a clock far in the future
                return _report_error(argparse.Namespace(json="--json" in words), _explained(error))
            return _execute(options)
    except SystemExit as error:  # help, the version, wrong usage
        if isinstance(error, WrongUsageError) and "--json" in words:
            _print_error_object(error.what, error.where, error.hint)
        with _closed_output_ignored():
            sys.stdout.flush()
        raise


def _unencodable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Encode a character that the output lacks: bytes of a file's name as they are, others as ``\\u2713``."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    one = UnicodeEncodeError(error.encoding, error.object, error.start, error.start + 1, error.reason)
    try:
        return codecs.lookup_error("surrogateescape")(one)
    except UnicodeEncodeError:
        return codecs.lookup_error("backslashreplace")(one)


def program() -> int:
    """Run the installed command: ``main`` in a process of its own."""
    collect_rarely()
    leave_pandas_out()
    _use_own_path()
    _open_output()
    _warn_of_little_memory()
    return main()


def _use_own_path() -> None:
    """Drop relative directories from PATH, so that no program comes from the current directory: another user's may hold
    a ``git``."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    if any(not os.path.isabs(folder) for folder in folders):  # noqa: PTH117
        os.environ["PATH"] = os.pathsep.join(filter(os.path.isabs, folders)) or os.defpath.lstrip(":")


def _open_output() -> None:
    """Connect standard output and standard error to /dev/null where the process was started with them closed."""
    if sys.stdout is None:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115


def _warn_of_little_memory() -> None:
    """Warn of a low limit of address space: C libraries that run out of it end the process with an unclear message or
    none."""
    most_bytes = resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= most_bytes < _ENOUGH_BYTES:
        most_mib = most_bytes >> 20
        write_stderr(f"howdah: {most_mib} MiB of address space may be too little; raise the limit (ulimit -v)\n")


def _execute(options: argparse.Namespace) -> int:
    """Run the command and return its exit code. Print an error as one line, or as an object with ``--json``."""
    try:
        code: int = 0
        with _closed_output_ignored():
            code = options.execute(options)
            sys.stdout.flush()
        return code
    except HowdahError as error:
        return _report_error(options, error)
    except KeyboardInterrupt:
        return report_interruption(text_after_interruption(options), as_data=getattr(options, "json", False))
    except _SYSTEM_ERRORS as error:
        return _report_error(options, _explained(error))


def _explained(error: Exception) -> HowdahError:
    """Turn an error of the system, or a missing library, into a HowdahError."""
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


def _report_error(options: argparse.Namespace, error: HowdahError) -> int:
    if os.strerror(errno.EFBIG) in error.what:  # another directory would not help
        error.hint = LARGER_FILES
    if os.strerror(errno.ENAMETOOLONG) in error.what:
        error.hint = shorter(error.where)
    if getattr(options, "json", False):
        _print_error_object(error.what, error.where, error.hint)
    write_stderr(f"howdah: {error}\n")
    return error.exit_code


def report_interruption(kept: str, *, as_data: bool) -> int:
    """Print that the command was interrupted and what is ``kept``; return the exit code."""
    if as_data:
        _print_error_object("interrupted", None, kept)
    write_stderr(f"howdah: interrupted; {kept}\n")
    return ExitCode.INTERRUPTED


def _print_error_object(what: str, where: str | None, hint: str | None) -> None:
    """Print the object of an error. Ignore an output that is full or closed: standard error has the message, too."""
    with contextlib.suppress(OSError), _closed_output_ignored():
        answer_error(what, where, hint)
        sys.stdout.flush()


@contextlib.contextmanager
def _closed_output_ignored() -> Iterator[None]:
    """Print nothing more once the reader of standard output has gone, not even when Python exits."""
    try:
        yield
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(program())
