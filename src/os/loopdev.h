/*
 * Loop devices: a file as a block device.
 */
#pragma once

#include "defs.h"

/* The device on which `file` (by fd) is attached, attached now where it is not. It
 * detaches by itself with its last user. The path is /dev/loopN. */
int loopdev_attach(int file, char ret_path[32], int *ret_fd) _must_check_;
int loopdev_refresh(int dev) _must_check_; /* the file has grown */
