/*
 * The begin and the end of our programs: see service.h.
 */
#include "service.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "confine.h"
#include "log.h"
#include "loop.h"
#include "num.h"
#include "poison.h"

void service_init(const char *name)
{
	sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	log_setup(name, LOG_LEVEL_INFO);
}

int service_number(const char *variable, uint32_t *ret, struct err *e)
{
	const char *text = getenv(variable);

	if (!text || num_u32(view_of(text), ret) < 0)
		return err_set(e, ERR_INTERNAL, "%s must be a number (this program is started by paddockd)",
			       variable);
	return 0;
}

int service_close_from(unsigned first, struct err *e)
{
	return close_range(first, ~0u, 0) < 0 ? err_sys(e, ERR_INTERNAL, errno, "close_range") : 0;
}

void service_limit_fds(unsigned n)
{
	struct rlimit files = { n, n };

	if (n && setrlimit(RLIMIT_NOFILE, &files) == 0)
		return;
	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	files.rlim_cur = files.rlim_max;
	(void)!setrlimit(RLIMIT_NOFILE, &files);
}

int service_drop(const char *setting, uint32_t uid, void (*filter)(uint8_t *rules), struct err *e)
{
	return confine_identity(setting, uid, -1, e) < 0 ? -1 : confine_reach(NULL, 0, filter, e);
}

int service_fail(const struct err *e)
{
	log_error("%s", e->msg);
	return EXIT_FAILURE;
}

int service_run(struct loop *l)
{
	int r = loop_run(l);
	return r < 0 ? EXIT_FAILURE : r;
}
