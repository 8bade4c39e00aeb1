#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The steps of action.yml, so that any machine can try them: `action.sh install`, then `action.sh run`.
# Inputs come in the environment. GITHUB_STEP_SUMMARY and GITHUB_OUTPUT may be missing.
set -eu

summary=${GITHUB_STEP_SUMMARY:-/dev/null}
output=${GITHUB_OUTPUT:-/dev/null}
baseline=${BASELINE:-baseline}

howdah() {
	python3 -m howdah.command.main "$@"
}

install() {
	# shellcheck disable=SC2086 # words
	python3 -m pip install --quiet ${INSTALL:-howdah howdah-guest}
	howdah doctor
}

nightly() {
	# shellcheck disable=SC2086 # words
	howdah nightly "$SUITE" --baseline "$baseline" --ktap howdah.ktap ${ARGUMENTS:-} || status=$?
	# The first baseline, and the next one: what has got worse never becomes one.
	case ${ACCEPT:-false}:$status in
	true:0 | true:7)
		# shellcheck disable=SC2086 # words
		howdah nightly "$SUITE" --baseline "$baseline" --accept ${ARGUMENTS:-} && status=0 || status=$?
		;;
	esac
}

run() {
	said=$(mktemp)
	status=0
	if [ -n "${SUITE:-}" ]; then
		nightly >"$said"
	elif [ -n "${PROFILE:-}" ]; then
		# shellcheck disable=SC2086 # words
		howdah run "$PROFILE" ${ARGUMENTS:-} >"$said" || status=$?
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
		if [ -z "${SUITE:-}" ] && [ -n "${PROFILE:-}" ]; then
			python3 "$(dirname "$0")/summary.py" || echo "There is no picture: the log says why."
		fi
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
