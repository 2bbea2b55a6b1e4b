/*
 * Redacts text that is kept for people to read: keys and tokens of known kinds, text after Bearer and
 * Basic, private keys, passwords in URLs, and long values after words like key, token, secret,
 * password. It works by appearance only; the values of secrets are not known here. Pure.
 */
#pragma once

#include "buf.h"

#define REDACT_MARK "[redacted]"

/* `cut`: there was more behind it, so that its last word may be the beginning of something; that is left out.
 * Never longer than REDACT_GROWTH times the text. */
#define REDACT_GROWTH 3
int redact(struct view text, bool cut, struct buf *out) _must_check_;
