/*
 * A database of NSS (cert9.db) with one certificate, trusted for servers: where builds of
 * Chromium look that read no policies (its headless shell, Electron), in ~/.pki/nssdb.
 */
#pragma once

#include "buf.h"

/* -EINVAL: not a certificate; -EIO. */
int nssdb_make(struct view pem, struct buf *out) _must_check_;
