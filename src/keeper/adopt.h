/* Shared by boxes.c and adopt.c: puts a box that lives into the table. */
#pragma once

#include "keeper.h"

int adopt_watch(struct keeper *k, struct keeper_box *b) _must_check_;
