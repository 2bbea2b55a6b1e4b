/*
 * Text that is kept for people to read, without what looks like a secret: keys and tokens
 * of known kinds, what follows Bearer and Basic, private keys, passwords of URLs, and long
 * values behind words like key, token, secret, password. By its looks alone: nobody here
 * knows the values. Pure.
 */
#pragma once

#include "buf.h"

#define REDACT_MARK "[redacted]"

/* `cut`: there was more behind it, so that its last word may be the beginning of something; that is left out.
 * Never longer than REDACT_GROWTH times the text. */
#define REDACT_GROWTH 3
int redact(struct view text, bool cut, struct buf *out) _must_check_;
