/*
 * Numbers from text: whole view or nothing, no sign, no space, no octal.
 */
#pragma once

#include "view.h"

int num_u64(struct view v, uint64_t *ret) _must_check_; /* -EINVAL, -ERANGE */
int num_u32(struct view v, uint32_t *ret) _must_check_;
int num_i64(struct view v, int64_t *ret) _must_check_; /* a leading '-' is allowed */
int num_hex(struct view v, uint64_t *ret) _must_check_;
