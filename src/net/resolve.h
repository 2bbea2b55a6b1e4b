/*
 * One question to a name server and the answer to it, as bytes. Nothing is sent here,
 * so that what a stranger answers can be tried without a network.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "dns.h"

#define RESOLVE_MESSAGE DNS_MESSAGE /* bytes of a question, and of an answer that is read */

struct resolve_question {
	uint16_t id;
	struct view host;
	bool v6; /* AAAA instead of A */
};

/* Its length, or 0 where the host cannot be asked for. */
size_t resolve_ask(const struct resolve_question *q, uint8_t out[RESOLVE_MESSAGE]);
/* 1: found, without a port; 0: the name has none of this kind; -1: not an answer to this question. */
int resolve_read(const struct resolve_question *q, const uint8_t *m, size_t len, struct sockaddr_storage *ret,
		 socklen_t *ret_len);
