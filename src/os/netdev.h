/*
 * The kernel's traffic counters of a network namespace, summed over its interfaces, including lo (a
 * box has nothing else).
 */
#pragma once

#include <sys/types.h>

#include "view.h"

struct netdev_usage {
	uint64_t rx_bytes, tx_bytes;
};

/* Of the namespace of a process, which the caller knows to live or to be unreaped. */
int netdev_usage(pid_t pid, struct netdev_usage *ret) _must_check_;
/* The text of /proc/PID/net/dev; -EBADMSG. */
int netdev_parse(struct view text, struct netdev_usage *ret) _must_check_;
