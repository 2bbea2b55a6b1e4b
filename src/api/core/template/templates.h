/*
 * Templates for the core itself: see template.h.
 */
#pragma once

#include "money.h"
#include "boxes.h"
#include "config_sets.h"
#include "template.h"

struct template_run;
struct template_layer;
struct snapshot;
struct store_template;

struct templates {
	void (*on_built)(struct core *c, const struct template *t); /* a build of it is over */
	struct list all;                                            /* in the order of their making */
	struct list starts, layers;                                 /* templates_start.c, templates_layer.c */
	struct list kept_steps;                                     /* templates_kept.c */
	unsigned n_layers;
	uint64_t layer_bytes, log_bytes; /* of uploads; of the logs of builds */
};

void templates_start_done(struct core *c);
/* For the build: held until it is given back. -errno; 0: the end. */
struct template_layer *templates_layer_hold(struct core *c, const struct template *t, struct view hash);
ssize_t templates_layer_read(const struct template_layer *l, uint64_t offset, void *room, size_t n);
void templates_layer_release(struct template_layer *l);
void templates_layer_forget(struct core *c, const struct template *t);
void templates_layer_done(struct core *c);

/* Into the index, without a row; NULL: no memory. */
struct template *templates_new(struct core *c, const struct tenant *tenant, struct view id, struct view name);
struct template_build *templates_build_new(struct template *t);
/* templates_rows.c: from its row, and into it with what is ready */
int templates_load(struct core *c, const struct store_template *row, struct err *e) _must_check_;
void templates_put_row(struct template *t, store_done *done, void *arg);
void templates_done(struct core *c);
void templates_log(struct template_build *b, enum template_level level, struct view text);
void templates_log_at(struct template_build *b, int64_t at_ms, enum template_level level, struct view text);
/* Its row as it is now, and nobody waits for it. */
void templates_save(struct template *t);
/* Once the boxes are known: no build is under way, so that those of builds are removed. */
void templates_recover(struct core *c);
/* Its tags are its own from now on; `done` when the store knows. */
void templates_publish(struct template_build *b, store_done *done, void *arg);
/* Takes a record over, with the variables of the build. */
void templates_take_record(struct template_build *b, struct view record);
void templates_run_free(struct template_run *r);
uint64_t templates_held(const struct core *c, const struct tenant *t, enum ledger_item i);
/* What its build says about where packages come from; NULL: nothing. */
const struct config_sets *templates_sets_of(const struct core *c, struct view snapshot);
