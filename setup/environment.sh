#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# environment.sh VENV REQUIREMENT: a Python environment with howdah (editable) and what REQUIREMENT asks for.
# Done again only when pyproject.toml has changed since.
set -eu

venv=$1 requirement=$2
stamp=$venv/.ready-$(printf '%s %s' "$requirement" "$(cat pyproject.toml)" | sha256sum | cut -c1-16)
[ -e "$stamp" ] && exit 0
if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
	echo "howdah needs Python 3.11 or newer; this is $(python3 --version)" >&2
	exit 1
fi
echo "preparing the Python environment in $venv"
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
pip() {
	"$venv/bin/pip" install --quiet --disable-pip-version-check "$@"
}
# uv needs a fifth of pip's processor time. It does not read pip's configuration, so that pip is asked where uv fails.
if ! { pip uv && "$venv/bin/uv" pip install --quiet --python "$venv/bin/python" --editable "$requirement"; } 2>/dev/null
then
	pip --editable "$requirement"
fi
touch "$stamp"
