/*
 * -v DIR:PATH[:ro]: directories of ours in a new sandbox, as copies. What is changed
 * there stays there. With :ro the copy belongs to root and nobody may write to it.
 */
#pragma once

#include "opts.h"
#include "session.h"

/* What can be said before there is a sandbox. */
int volume_check_all(const struct opt_list *volumes, struct err *e) _must_check_;
int volume_copy_all(struct session *s, const struct json *box, const struct opt_list *volumes,
		    struct err *e) _must_check_;
