/*
 * The daemon of this machine. `paddock serve` leaves a note about where it listens
 * and where its administrator's key is, so that commands find it from any
 * directory. The note (CONFIG_NOTE) holds no secret: the key's own file decides who may read it. It is of the
 * first daemon that runs, and paddockd takes it away when it ends.
 */
#pragma once

#include "config.h"
#include "err.h"

struct local_daemon {
	char url[300]; /* "": there is none */
	char key_file[1024];
	char run_dir[512]; /* "": the note is of a daemon that did not say */
};

/* Only a note that root wrote, that nobody else could have changed and whose daemon runs. */
void local_find(struct local_daemon *ret);
/* Whether there are others beside the one of the note. */
bool local_has_others(void);
/* Leaves the note, unless another daemon's is there that still runs. */
int local_announce(const struct local_daemon *d, struct err *e) _must_check_;
