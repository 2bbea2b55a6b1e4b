/*
 * The sets of hosts that an egress policy may name: the well-known ones (data, in
 * etc/egress-sets.json), and those of package managers, which are whatever this machine
 * is configured to use: its mirrors, or what the tool itself uses where nothing is
 * configured. No host of a package registry stands in our code or data.
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

/* Adds the host of a URL that has one and is http or https. */
void config_sets_url(struct config_hosts *h, struct view url);
bool config_sets_has(const struct config_hosts *h, struct view host);

/* What the files say; each may be called for several files. The text of pip.conf and of npmrc: true where
 * it says which index is used instead of the tool's own. */
bool config_sets_pip(struct config_hosts *h, struct view text);
bool config_sets_npm(struct config_hosts *h, struct view text);
void config_sets_apt_list(struct config_hosts *h, struct view text); /* sources.list */
void config_sets_apt_deb822(struct config_hosts *h, struct view text); /* *.sources */
/* What the tools use by themselves: pip's models/index.py, npm's definitions.js. */
void config_sets_pip_own(struct config_hosts *h, struct view text);
void config_sets_npm_own(struct config_hosts *h, struct view text);
/* git's url.BASE.insteadOf: the hosts of BASE where what it stands for is among `known`. */
void config_sets_git(struct config_hosts *h, struct view text, const struct json *known);

/* Adds to doc.egress.sets whatever is not given there, unless doc.egress.detect is false. `root` is
 * where the machine's files are ("" in use), `env` an environ. */
int config_sets_add(struct arena *a, struct json *doc, const char *root, char *const *env, struct err *e) _must_check_;
