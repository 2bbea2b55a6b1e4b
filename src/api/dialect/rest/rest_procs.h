/* Kept processes, as JSON: for the files of the dialect that show one. */
#pragma once

#include "json.h"

struct proc_info;
/* The members of one, into an open object. */
void rest_procs_put_info(struct json_out *o, const struct proc_info *p);
