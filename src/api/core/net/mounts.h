/*
 * What is put into a box before anybody uses it: the secrets that its spec names, read
 * from the vault and handed to its PID 1, and where its policy puts secrets into requests
 * the certificate by which the gate does that. Done again at every start: they are in the
 * box's memory alone.
 */
#pragma once

#include "err.h"

struct box;
struct box_part;

/* `done` is called once, perhaps before this returns; not when the box is freed. */
void mounts_apply(struct box *b, void (*done)(struct box *b, const struct err *e));
/* It runs, and its policy is one now that needs the installation's authority. False: nothing is to be done.
 */
bool mounts_trust(struct box *b, void (*done)(void *arg, const struct err *e), void *arg) _must_check_;
extern const struct box_part mounts_part;
