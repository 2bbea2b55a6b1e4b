/*
 * What listens for TCP in the box, and who.
 */
#pragma once

#include "conn.h"

/* Listeners: the operation. */
int listeners_list(const struct conn_call *call, struct err *e) _must_check_;

/* Pure, for the above and for tests: one line of /proc/net/tcp or tcp6. False: not a listener. */
struct listeners_line {
	uint16_t port;
	uint64_t inode;
	char address[48];
};
bool listeners_parse(struct view line, struct listeners_line *ret);
