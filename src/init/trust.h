/*
 * The installation's authority for programs that know neither the image's store of
 * certificates nor the variables of secrets.c: browsers. The files are in /run/paddock and
 * so in no snapshot; where a browser looks for policies there is a link to them, unless
 * somebody has put something there. What reads no policies reads a database in its user's
 * home. An image in which that cannot be (it is read-only) does without.
 */
#pragma once

#include "conn.h"

int trust_set(const struct conn_call *call, struct err *e) _must_check_;
/* What Chromium reads: the certificate, and no encrypted ClientHellos, so that mostly nothing needs to be
 * intercepted. -EINVAL */
int trust_chromium(struct view pem, struct buf *out) _must_check_;
