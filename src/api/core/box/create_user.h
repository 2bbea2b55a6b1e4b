/*
 * Whether the user that a box was asked for exists in it: only its PID 1 can say.
 */
#pragma once

#include "guest.h"

struct create_user {
	struct guest *guest;
	void (*done)(struct create_user *u, const struct err *e); /* e names the user that is missing */
	struct call call;
};

void create_user(struct create_user *u, struct view name);
