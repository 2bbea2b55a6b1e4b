/*
 * Metadata of tenants' secrets: what clients wrote beside the name. The vault has the secrets and need not
 * know these; they are rows of the settings, by tenant and name. They are dropped with their secret.
 */
#pragma once

#include "json.h"
#include "store.h"

struct core;

#define LABELS_ENTRIES 32
#define LABELS_KEY     128
#define LABELS_VALUE   1024
#define LABELS_TOTAL   8192

int labels_check(const struct json_strmap *m, struct err *e) _must_check_;
/* A JSON object; "{}" when nothing was said. */
struct view labels_of(const struct core *c, struct view tenant, struct view name);
/* Replaces them; an empty text drops them. 0 or -ENOMEM. */
int labels_set(struct core *c, struct view tenant, struct view name, struct view json) _must_check_;
/* A row of the settings; others' are passed over. */
int labels_load(struct core *c, const struct store_setting *s) _must_check_;
void labels_done(struct core *c);
