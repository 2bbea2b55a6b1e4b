/*
 * From a wish to a spec, and to the store and back: see spec.h. Pure: no I/O, no state.
 */
#pragma once

#include "config.h"
#include "json.h"
#include "spec.h"
#include "spec_mounts.h"
#include "spec_secrets.h"
#include "spec_workspaces.h"

#define SPEC_ARENA_MAX (1024u * 1024)

extern const char *const spec_on_end_names[SPEC_ENDS];

/* Checks and completes. The digest is left empty, and the backend where none was named. ERR_INVALID names
 * the field. */
int spec_make(const struct box_wish *w, const struct config *c, struct arena *a, struct box_spec *ret,
	      struct err *e) _must_check_;
/* Room for a box that is like this one; views are borrowed. The name is left out. */
void spec_to_wish(const struct box_spec *s, struct box_wish *ret);
/* Parts of it, for changes of a box that is there. */
int spec_take_ttl(uint64_t wished, const struct config *c, uint64_t *ret, struct err *e) _must_check_;
/* The limits of a wish, those that it lacks by the configuration. */
int spec_take_limits(const struct box_limits_wish *w, const struct config *c, struct box_limits *ret,
		     struct err *e) _must_check_;
int spec_take_on_end(struct view wished, enum spec_on_end *ret, struct err *e) _must_check_;
int spec_take_disk(bool has, uint64_t wished, const struct config *c, const char *field, uint64_t *ret,
		   struct err *e) _must_check_;
int spec_take_metadata(const struct json_strmap *wished, struct arena *a, struct json_strmap *ret,
		       struct err *e) _must_check_;
/* The columns `spec` and `metadata` of the store: JSON, and back. Name, image, digest and backend have
 * columns of their own. */
int spec_to_json(const struct box_spec *s, struct buf *out) _must_check_;
int spec_metadata_to_json(const struct box_spec *s, struct buf *out) _must_check_;
int spec_from_json(struct arena *a, struct view spec, struct view metadata, struct box_spec *ret,
		   struct err *e) _must_check_;

/* An environment's names and size; an absolute path. `field` is for the message. */
int spec_check_env(const struct json_strmap *m, const char *field, struct err *e) _must_check_;
int spec_check_workdir(struct view v, const char *field, struct err *e) _must_check_;
