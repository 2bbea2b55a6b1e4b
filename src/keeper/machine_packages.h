/*
 * Files that package managers need in the machine's image: see machine_packages.c.
 */
#pragma once

#include "err.h"

int machine_packages(int rootfs, struct err *e) _must_check_;
