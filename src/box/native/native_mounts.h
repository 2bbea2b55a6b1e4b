/*
 * The mounts of a box that do not need its namespaces: layers, storage, workspaces, /dev. They are made
 * detached and handed to the child as fds.
 */
#pragma once

#include "native_child.h"

/* Fills c->mounts; the caller closes them, also after a failure. */
int native_mounts(struct native *n, const struct plan *p, const struct plan_image *image,
		  const struct native_files *files, struct native_child *c, struct err *e) _must_check_;
