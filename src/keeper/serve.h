/*
 * The role "serve": everything that paddockd sets up before and around its loop.
 */
#pragma once

#include "keeper.h"

int serve_main(int config_fd);
/* paddock-api said that it is ready. */
void serve_ready(struct keeper *k);
/* The role "doctor": prints what the machine can give, as lines or as JSON; 0 when boxes can be made. */
int doctor_main(int config_fd, bool json);
/* The configuration on a descriptor, in the arena. */
int serve_read_config(int fd, struct arena *a, struct config *c, struct err *e) _must_check_;
/* Makes a trial box and adds what it shows to the posture: at the start, and again by a create after one that
 * failed, since a full disk or a busy machine is not for ever. */
void serve_try_walls(struct keeper *k, struct walls *w);
/* A mount namespace of our own, and the secure bits that making boxes needs. */
int serve_own_mounts(struct err *e) _must_check_;
