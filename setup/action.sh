#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The steps of action.yml, so that any machine can try them: `action.sh install`, then `action.sh run`.
# Inputs come in the environment. GITHUB_STEP_SUMMARY and GITHUB_OUTPUT may be missing.
set -eu

summary=${GITHUB_STEP_SUMMARY:-/dev/null}
output=${GITHUB_OUTPUT:-/dev/null}

install() {
	# shellcheck disable=SC2086 # words
	python3 -m pip install --quiet ${INSTALL:-howdah howdah-guest}
	python3 -m howdah.command.main doctor
}

run() {
	said=$(mktemp)
	status=0
	if [ -n "${SUITE:-}" ]; then
		# shellcheck disable=SC2086 # words
		python3 -m howdah.command.main nightly "$SUITE" --baseline "${BASELINE:-baseline}" --ktap howdah.ktap \
			${ARGUMENTS:-} >"$said" || status=$?
	elif [ -n "${PROFILE:-}" ]; then
		# shellcheck disable=SC2086 # words
		python3 -m howdah.command.main run "$PROFILE" ${ARGUMENTS:-} >"$said" || status=$?
	else
		echo "howdah: the action needs 'profile' or 'suite'" >&2
		status=2
	fi
	cat "$said"
	{
		echo "### howdah: ${SUITE:-${PROFILE:-nothing to run}}"
		echo '```'
		cat "$said"
		echo '```'
		[ "$status" = 0 ] || echo "howdah ended with status $status."
	} >>"$summary"
	echo "exit-code=$status" >>"$output"
	rm -f "$said"
	return "$status"
}

case ${1:-} in
install) install ;;
run) run ;;
*)
	echo "usage: action.sh install|run" >&2
	exit 2
	;;
esac
