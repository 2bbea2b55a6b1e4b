/*
 * What a stateful shell executes: this text, which comes in a variable, so that nobody
 * has it on the screen who types `ps`.
 *
 * Protocol. On fd 250 comes, for each command, a header "ID LENGTH STDIN" ended
 * by NUL, then LENGTH bytes of command. On fd 251 goes, after each, a record
 * "RID STATUS CWD" NUL `declare -px` NUL; the same with X instead of R when the shell
 * exits. stdout and stderr are pipes of their own, so nothing in the output
 * means anything to us. The id is random: a program cannot report for another.
 *
 * Why each part is there:
 *
 *   builtin …      A user's function named `read` or `eval` must not take the loop apart.
 *   { …; } 2>…     Under `set -x` the loop would otherwise trace itself into stderr.
 *   read -N        Takes the command in large pieces. Without -N bash reads a pipe byte by
 *                  byte, and 1 MiB takes a second; with LC_ALL=C the length means bytes.
 *   eval … <>      Each command gets its own stdin, and stdout and stderr from copies (253, 254),
 *                  which are undone after it: a stray `exec >/dev/null` lasts for its command only.
 *   250<&- …       What a command starts does not inherit our descriptors. bash keeps its copies
 *                  close-on-exec, and has put them back when the EXIT trap runs.
 *   . /dev/stdin   The loop is sourced, because `return` in a trap then abandons the whole
 *                  command without ending the shell: functions, loops and builtins that never start
 *                  a process too. (In a function instead, `declare` would make local variables.)
 *   trap … RTMAX   The api sends it when time is up, then kills what the command started.
 *                  `return` leaves one function; the DEBUG trap (-T: inherited by functions) repeats
 *                  it before the next simple command of each caller. That costs a user's own DEBUG
 *                  trap, and only then.
 *   status         `$?` is the last command's, as at a prompt (not under `set -e`, which it would end).
 *   1137           137, and the kernel has killed something for memory since the last look: a thousand
 *                  is added, which no status can be.
 *   busy           A signal that comes when the command is just over does nothing.
 *   trap … EXIT    `exit`, `set -e` and the like report status, cwd and environment on the way out.
 *   declare -px    With every record, so that a shell that is killed or replaced by `exec` loses no
 *                  exported variable. It is a builtin: no fork.
 *   -t 252         A shell with a terminal: what has no input of its own reads that. Its readers are
 *                  programs: no colours, no pagers, no \r.
 *   trap … INT     Ctrl-C gives the command up, not the shell.
 *   expand_aliases Off in scripts; people expect `alias` to work here.
 */
#include "shells_impl.h"

const char shells_loop[] =
	"builtin unset __paddock\n"
	"__paddock_report() {\n"
	"	{ builtin printf '%s%s %d %s\\0' \"$1\" \"$__paddock_id\" \"$__paddock_rc\" \"$PWD\"\n"
	"	builtin declare -px\n"
	"	builtin printf '\\0'; } >&251 2>/dev/null\n"
	"}\n"
	"__paddock_oom() {\n"
	"	builtin local k v f\n"
	"	for f in /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events; do\n"
	"		[[ -r $f ]] && while builtin read -r k v; do\n"
	"			[[ $k == oom_kill && $v != \"$__paddock_kills\" ]] && { __paddock_kills=$v; "
	"builtin return 0; }\n"
	"		done <$f\n"
	"	done; builtin return 1\n"
	"}\n"
	"__paddock_oom 2>/dev/null\n"
	"__paddock_rc=0\n"
	"__paddock_status() { builtin return \"$__paddock_rc\"; }\n"
	"__paddock_loop='while { IFS=\" \" builtin read -r -d \"\" -u 250 __paddock_id __paddock_n "
	"__paddock_in &&\n"
	"	LC_ALL=C IFS= builtin read -r -d \"\" -N \"$__paddock_n\" -u 250 __paddock_c &&\n"
	"	{ [[ $__paddock_in != /dev/null ]] || __paddock_in=$__paddock_none; } &&\n"
	"	__paddock_busy=1; } 2>/dev/null; do\n"
	"	{ [[ $- == *e* ]] || __paddock_status; } 2>/dev/null\n"
	"	builtin eval \"$__paddock_c\" <\"$__paddock_in\" >&253 2>&254 250<&- 251>&- 253>&- 254>&-\n"
	"	{ __paddock_rc=$? __paddock_busy=; __paddock_ok=$__paddock_rc\n"
	"	[[ $__paddock_rc == 137 ]] && __paddock_oom && __paddock_rc=1137\n"
	"	__paddock_report R; __paddock_rc=$__paddock_ok; } 2>/dev/null\n"
	"done; builtin exit'\n"
	"__paddock_none=/dev/null\n"
	"if [[ -t 252 ]]; then\n"
	"	exec 0<&252 252<&-\n"
	"	__paddock_none=/dev/tty; export TERM=dumb PAGER=cat GIT_PAGER=cat\n"
	"	stty -onlcr 2>/dev/null\n"
	"fi\n"
	"trap 'if [[ $__paddock_busy ]]; then\n"
	"	builtin set -T; builtin trap \"builtin return 130\" DEBUG; builtin return 130; fi' INT\n"
	"shopt -s expand_aliases\n"
	"exec 253>&1 254>&2\n"
	"trap '{ __paddock_rc=$?; __paddock_report X; } 2>/dev/null' EXIT\n"
	"trap 'if [[ $__paddock_busy ]]; then\n"
	"	builtin set -T; builtin trap \"builtin return 143\" DEBUG; builtin return 143; fi' RTMAX\n"
	"while :; do\n"
	"	builtin . /dev/stdin <<<\"$__paddock_loop\"\n"
	"	{ __paddock_rc=$?; builtin trap - DEBUG; builtin set +T; __paddock_busy=; __paddock_report "
	"R; } 2>/dev/null\n"
	"done\n";
