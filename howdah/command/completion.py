# SPDX-License-Identifier: Apache-2.0
"""``howdah completion``: print the script that enables completion in a shell."""

from __future__ import annotations

import argparse

from howdah.command.completing import SHELLS, script
from howdah.layout import write_stdout

_HOW = """\
Switch it on once; it takes effect in the next shell.
bash:
  howdah completion bash > ~/.local/share/bash-completion/completions/howdah
zsh, with ~/.zfunc in fpath:
  howdah completion zsh > ~/.zfunc/_howdah
fish:
  howdah completion fish > ~/.config/fish/completions/howdah.fish
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _HOW
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help=", ".join(SHELLS))


def execute(options: argparse.Namespace) -> int:
    write_stdout(script(options.shell))
    return 0
