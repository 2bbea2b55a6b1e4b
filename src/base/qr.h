/*
 * QR codes (ISO/IEC 18004): bytes, error correction of level M, versions 1 to 20.
 */
#pragma once

#include "view.h"

#define QR_SIZE_MAX  97
#define QR_BYTES_MAX 666 /* what version 20 holds */

struct qr {
	unsigned size; /* of a side, in modules, without the quiet zone of 4 */
	uint8_t dark[QR_SIZE_MAX][QR_SIZE_MAX];
};

int qr_encode(struct view bytes, struct qr *ret) _must_check_; /* -E2BIG */
