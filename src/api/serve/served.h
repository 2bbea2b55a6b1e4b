/*
 * What is served where: the listeners, the dialects on each, and the paths of each. It is read from the
 * tables by which requests are passed on, so it cannot differ from what a request finds.
 */
#pragma once

#include "serve.h"

/* The address that a listener really has. */
int served_note(struct serve *s, unsigned listener, int fd, struct err *e) _must_check_;
/* {"listeners": [...], "ports": [...]}; without the braces. */
void served_put(const struct serve *s, struct json_out *o);
/* The short form of a pattern, for people: up to its first word that is no version, and a sandbox's name
 * before it.
 * "/v1/sandboxes/{id}/exec" is "/v1/sandboxes". */
struct view served_prefix(const char *pattern);
