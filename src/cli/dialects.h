/*
 * `paddock doctor --dialects`: which APIs a daemon serves at which address.
 */
#pragma once

#include "cmd.h"

int dialects_show(struct cmd_ctx *ctx, struct err *e) _must_check_;
