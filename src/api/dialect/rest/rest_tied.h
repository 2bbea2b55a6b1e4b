/*
 * The answer to a creation with `delete_on_disconnect`: a line of JSON, then
 * nothing but empty lines until the box is gone or the client is.
 */
#pragma once

struct box;
struct request;

void rest_tied_answer(struct request *r, const struct box *b);
