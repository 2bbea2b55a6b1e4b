/*
 * paddock-gate as the keeper sees it: the program, the sockets that are made for it in
 * the boxes' network namespaces, and its channel to the api.
 *
 * The fds of a box are the gate's alone: when it dies they close, and nothing leaves a
 * box until another gate has new ones.
 */
#pragma once

#include "keeper.h"

void gate_init(struct keeper *k);
/* Starts it, and again when it dies. */
void gate_start(struct keeper *k);
/* A box runs: its sockets (taken) go to the gate. NULL or none: they are made, soon. */
void gate_box(struct keeper *k, struct keeper_box *b, struct netns_gate *g);
void gate_box_gone(struct keeper *k, struct keeper_box *b);
/* A new channel between api and gate; the fd is the api's end. */
int gate_open(struct keeper *k, int *ret_fd, struct err *e) _must_check_;
