/*
 * Shared by the files of the egress language. No other code includes this.
 */
#pragma once

#include "egress.h"

/* ERR_INVALID: the text, quoted and cut, and what about it. */
int egress_bad(struct err *e, struct view v, const char *what);
void egress_put_inject(struct json_out *o, const struct egress_rule *r);
bool egress_same_inject(const struct egress_rule *a, const struct egress_rule *b);
int egress_port_range(struct view text, struct egress_ports *ret, struct err *e) _must_check_;
int egress_check_path(struct view path, struct err *e) _must_check_;
