# The bash of a code context: one shell that lives as long as its process.
# paddock-api sends this text over standard input (so that `ps` shows none of it) and then requests over
# descriptor 250: a line
# "ID BYTES ENV_BYTES", assignments for this code alone, then the code. Events go to descriptor 251, a JSON object on each
# line. The code gets neither: they are closed while it runs.
#
# Code is evaluated at the top, not in a function, so that declare makes globals.
# SIGINT leaves the code where that is at the top, and otherwise the function that
# is being run. While no code runs it does nothing: a request half read would be lost.
# The outer loop is for code that says break.

__paddock_id= __paddock_rc=0 __paddock_count=0 __paddock_x= __paddock_on=
while :; do exec </dev/null; while :; do
	# Comes here by an interrupt as well.
	{ __paddock_on=; case $- in *x*) __paddock_x=x ;; *) __paddock_x= ;; esac; set +x; } 2>/dev/null
	if [ -n "$__paddock_id" ]; then
		if [ "$__paddock_rc" != 0 ]; then
			printf '{"id":%s,"type":"error","name":"ExitStatus","value":"%s","traceback":""}\n' \
				"$__paddock_id" "$__paddock_rc" >&251
		fi
		printf '{"id":%s,"type":"end","count":%s}\n' "$__paddock_id" "$__paddock_count" >&251
		__paddock_id=
	fi
	LC_ALL=C IFS=' ' read -r -u 250 __paddock_id __paddock_n __paddock_env || exit 0
	if [ "$__paddock_env" = 0 ]; then __paddock_env=; else LC_ALL=C IFS= read -r -u 250 -N "$__paddock_env" __paddock_env; fi
	LC_ALL=C IFS= read -r -u 250 -N "$__paddock_n" __paddock_code
	__paddock_count=$((__paddock_count + 1)) __paddock_rc=0
	# Each time anew: the code may have set its own.
	trap 'if [ -n "$__paddock_on" ]; then
		if [ -z "${FUNCNAME-}" ]; then __paddock_rc=130; continue 1000; else return 130; fi
	fi' INT
	__paddock_on=1
	printf '{"id":%s,"type":"begin"}\n' "$__paddock_id" >&251
	if [ -n "$__paddock_x" ]; then set -x; fi
	if [ -z "$__paddock_env" ]; then
		eval "$__paddock_code" 250<&- 251>&-
	else
		eval "$__paddock_env eval \"\$__paddock_code\" 250<&- 251>&-"
	fi
	{ __paddock_rc=$? __paddock_on=; } 2>/dev/null
done; done
