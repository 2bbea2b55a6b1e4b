/*
 * Shared by the files of paddock-vault: see main.c.
 */
#pragma once

#include "ca.h"
#include "grants.h"
#include "link.h"
#include "loop.h"
#include "shelf.h"
#include "tickets.h"

struct vault {
	struct loop *loop;
	struct link keeper;
	struct list peers;
	int dir;                /* DATA/vault */
	int secrets;            /* DATA/vault/secrets */
	struct shelf_keys keys; /* the first is the master key */
	bool given;             /* it is a credential, not a file of ours */
	struct shelf shelf;
	struct grants grants;
	struct tickets tickets;
	struct ca ca;
	struct err locked; /* set: nothing can be opened, and why; every call fails with it */
};

/* master.c: the master key. Credentials (`fds`) come before the file; the file is made when nothing was
 * sealed yet. */
int master_load(struct vault *v, const int *fds, unsigned n_fds, struct err *e) _must_check_;
/* Seals what is sealed with an older key and forgets that; at the start and by command. */
int master_settle(struct vault *v, unsigned *ret_resealed, struct err *e) _must_check_;
int master_rotate(struct vault *v, unsigned *ret_resealed, struct err *e) _must_check_;

/* calls.c: what a peer may ask for. Takes the fd. */
void calls_accept(struct vault *v, int32_t role, int fd);
