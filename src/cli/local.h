/*
 * The daemon of this machine. `paddock serve` leaves a note about where it listens
 * and where its administrator's key is, so that commands find it from any
 * directory. The note holds no secret: the key's own file decides who may read it.
 */
#pragma once

#include "err.h"

#define LOCAL_NOTE "/run/paddock.json"

struct local_daemon {
	char url[300]; /* "": there is none */
	char key_file[1024];
	char run_dir[512]; /* "": the note is of a daemon that did not say */
};

/* Only a note that root wrote, that nobody else could have changed and whose daemon runs. */
void local_find(struct local_daemon *ret);
/* Leaves the note, unless another daemon's is there that still runs. */
int local_announce(const struct local_daemon *d, struct err *e) _must_check_;
