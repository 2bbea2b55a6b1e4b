/*
 * Makes an image from an archive, inside a box: what unpacks a stranger's archive is as boxed as what runs a
 * stranger's code.
 */
#pragma once

#include "image.h"
#include "run.h"
#include "sha256.h"

struct box;
struct import;

struct import_ops {
	void (*on_room)(struct import *im);
	void (*done)(struct import *im, const struct image *image, const struct err *e);
};

enum import_phase {
	IMPORT_IDLE,
	IMPORT_MAKING,
	IMPORT_UNPACKING,
	IMPORT_UNPACKED,
	IMPORT_COMMITTING,
	IMPORT_LISTING,
	IMPORT_FAILING,
};

/* Embedded by the caller, zeroed; kept until `done` or import_cancel. */
struct import {
	const struct import_ops *ops;
	struct core *core;
	enum import_phase phase;
	char name[64];
	struct job *job; /* of MAKING, LISTING and FAILING */
	struct err failed;
	struct box *box;
	struct exec exec;
	struct call commit;
	struct sha256 hash;
	bool ended;        /* the archive's last byte has come */
	uint64_t skipped;  /* entries that were left out */
	struct buf config; /* image_config.h; empty: none */
};

int import_start(struct core *c, const struct actor *a, struct view name, struct import *im,
		 struct err *e) _must_check_;
/* How much was taken; on_room follows when that was not all. */
size_t import_send(struct import *im, struct view data);
void import_end(struct import *im);
void import_cancel(struct import *im);
