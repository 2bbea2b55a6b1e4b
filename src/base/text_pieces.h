/*
 * Text in pieces: bytes that come in any portions are passed on so that no character of UTF-8 is split over
 * two of them. What is no UTF-8 passes as it is.
 */
#pragma once

#include "view.h"

/* The zero value is the beginning. */
struct text_pieces {
	char tail[4]; /* the first bytes of a character */
	size_t n;
};

/* `put` is called with up to two pieces, none of them empty. */
void text_pieces_add(struct text_pieces *p, struct view data, void (*put)(void *arg, struct view piece),
		     void *arg);
/* The beginning of a character that never was completed, if there is one. */
void text_pieces_end(struct text_pieces *p, void (*put)(void *arg, struct view piece), void *arg);
