# SPDX-License-Identifier: Apache-2.0
"""The entry point of the installed command. It loads nothing by itself, so that Ctrl-C is handled from the start."""

import sys


def program() -> int:
    """Load and run the command. Ctrl-C while it loads prints one line instead of a traceback."""
    try:
        from howdah.command.main import program as run
    except KeyboardInterrupt:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
        from howdah.command.main import report_interruption

        return report_interruption("nothing was begun", as_data="--json" in sys.argv)
    return run()
