/*
 * The sets of hosts that an egress policy may name: the well-known ones (data, in
 * etc/egress-sets.json), and those of package managers, which are whatever the box's image
 * is configured to use, or this machine: mirrors, or what the tool itself uses where nothing
 * is configured. No host of a package registry stands in our code or data.
 *
 * config_sets.c reads this machine, config_sets_image.c an image, config_sets_merge.c puts
 * the two together, config_sets_read.c knows the files' formats.
 */
#pragma once

#include "json.h"

/* Hosts that are found, as targets ("a.b", "a.b:8080"), each once. */
#define CONFIG_SETS_HOSTS 64
struct config_hosts {
	struct arena *arena;
	struct view items[CONFIG_SETS_HOSTS];
	size_t n;
};

/* Adds the host of a URL that has one and is http or https. Names and single addresses only: no file widens a
 * set by a pattern. */
void config_sets_url(struct config_hosts *h, struct view url);
bool config_sets_has(const struct config_hosts *h, struct view host);

/* What the files say; each may be called for several files. The text of pip.conf and of npmrc: true where
 * it says which index is used instead of the tool's own. */
bool config_sets_pip(struct config_hosts *h, struct view text);
bool config_sets_npm(struct config_hosts *h, struct view text);
void config_sets_apt_list(struct config_hosts *h, struct view text);   /* sources.list */
void config_sets_apt_deb822(struct config_hosts *h, struct view text); /* *.sources */
void config_sets_apt_proxy(struct config_hosts *h, struct view text);  /* apt.conf */
bool config_sets_yarn(struct config_hosts *h, struct view text);       /* .yarnrc, .yarnrc.yml */
void config_sets_lines(struct config_hosts *h, struct view text); /* the URLs of all lines but comments */
/* What the tools use by themselves: pip's models/index.py, npm's definitions.js. */
void config_sets_pip_own(struct config_hosts *h, struct view text);
void config_sets_npm_own(struct config_hosts *h, struct view text);
/* ID= of os-release, if it can be the name of a set. */
struct view config_sets_distribution(struct arena *a, struct view text);
/* git's url.BASE.insteadOf: the hosts of BASE where what it stands for is among `known`. */
void config_sets_git(struct config_hosts *h, struct view text, const struct json *known);

/* Adds to doc.egress.sets whatever is not given there, and to doc.egress.sources where it comes from, unless
 * doc.egress.detect is false. `root` is where the machine's files are ("" in use), `env` an environ. */
int config_sets_add(struct arena *a, struct json *doc, const char *root, char *const *env,
		    struct err *e) _must_check_;

/* ---- images ---- */

#define CONFIG_TREE_NAME   256          /* NAME_MAX and a NUL */
#define CONFIG_SETS_RECORD (24u * 1024) /* of what an image says */

/* The files of an image, whose maker is nobody's friend: paths are relative to its root, and mean
 * what they mean in a box of it. */
struct config_tree {
	/* A regular file of at most the buffer's maximum; false: there is none that can be read. */
	bool (*read)(const struct config_tree *t, const char *path, struct buf *out);
	/* The names in a directory, as far as there is room; how many. */
	size_t (*list)(const struct config_tree *t, const char *path, char (*names)[CONFIG_TREE_NAME],
		       size_t room);
};

/* What it says, for config_sets_merge: {"sets": {NAME: [HOST…]}, "more": …}. `sets` stand for what the
 * machine says, `more` beside it. Never larger than CONFIG_SETS_RECORD: what does not fit is left out. */
void config_sets_survey(struct arena *a, const struct config_tree *t, struct buf *out);

/* What sets mean for some boxes: {NAME: [TARGET…]}, and for each that was not given by the administrator
 * where it comes from: {NAME: [SOURCE…]} of "machine", "tool" (its own default), "known", "image",
 * "template". */
struct config_sets {
	const struct json *sets, *sources;
};

/* The machine's, with what an image says (a record, or nothing) and its environment (or NULL) instead. Sets
 * that the administrator gave stay as they are, well-known ones only grow. What is not a host, or an address
 * that is not public, is left out. ERR_INVALID for what is no record. */
int config_sets_merge(struct arena *a, const struct config_sets *base, struct view record,
		      const struct json_strmap *env, const char *source, struct config_sets *ret,
		      struct err *e) _must_check_;
