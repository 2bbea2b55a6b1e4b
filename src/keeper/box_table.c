/*
 * Boxes in memory and in their run directories: see box_table.h.
 */
#include "box_table.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fd.h"
#include "pb.h"
#include "spawn.h"
#include "workdirs.h"
#include "poison.h"

struct keeper_box *box_table_get(struct box_table *t, struct view id)
{
	struct map_node *n = map_get(&t->by_id, id);
	return n ? CONTAINER(n, struct keeper_box, node) : NULL;
}

int box_table_take(struct keeper_box *b, const struct spec_workspaces *w)
{
	b->spec.workspaces = b->workspaces = NULL;
	if (!w || !w->n)
		return 0;
	b->spec.workspaces = b->workspaces = malloc(sizeof(*w));
	if (!b->workspaces)
		return -ENOMEM;
	*b->workspaces = *w;
	return 0;
}

void box_table_free(struct keeper_box *b)
{
	if (!b)
		return;
	free(b->workspaces);
	free(b->commit_config);
	free(b);
}

void box_table_fields(const struct wire_box_spec *w, struct spec *s)
{
#define FROM_WIRE(json)                           s->json = w->json;
#define FIELD(kind, name, json, shown, wire, ...) BOX_FIELD_IF_##wire(FROM_WIRE, json)
#include "box_fields.def"
#undef FIELD
}

void box_table_state(const struct keeper_box *b, struct wire_box_state *m, struct box_table_parts *parts)
{
	parts->spec = (struct wire_box_spec){ .id = view_of(b->spec.id),
					      .image = view_of(b->image),
					      .hostname = view_of(b->spec.hostname),
					      .limits = &parts->limits,
					      .require = b->spec.require,
					      .backend = view_of(b->spec.backend) };
#define TO_WIRE(json)                             parts->spec.json = b->spec.json;
#define FIELD(kind, name, json, shown, wire, ...) BOX_FIELD_IF_##wire(TO_WIRE, json)
#include "box_fields.def"
#undef FIELD
	box_limits_to_wire(&b->spec.limits, &parts->limits, &parts->spec.disk_bytes);
	workdirs_put(b->spec.workspaces, parts->workspaces, &parts->spec);
	*m = (struct wire_box_state){ .id = view_of(b->spec.id),
				      .pid = (uint32_t)b->in.pid,
				      .started = b->started,
				      .slot = b->slot,
				      .spec = &parts->spec };
}

int box_table_save(const struct keeper_box *b, int run_box)
{
	char pid[16];
	snprintf(pid, sizeof(pid), "%d\n", b->in.pid);
	/* `state` is what counts and is renamed into place; `pid` is for people. */
	_cleanup_(closep) int fd = openat(run_box, "pid", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	int r = fd < 0 ? -errno : fd_write_all(fd, pid, strlen(pid));
	struct wire_box_state m;
	struct box_table_parts parts;
	box_table_state(b, &m, &parts);
	m.capture = b->in.capture;
	m.features = b->features;
	struct buf out = BUF_INIT(16384);
	if (r == 0)
		r = pb_encode(&wire_box_state_msg, &m, &out);
	if (r == 0)
		r = fd_replace(run_box, "state", out.p, out.n, 0600, false);
	buf_done(&out);
	return r;
}

static int read_state(struct view text, struct arena *a, struct keeper_box *b)
{
	struct wire_box_state m;
	int r = pb_decode(&wire_box_state_msg, text, PB_SKIP_UNKNOWN, a, &m);
	if (r < 0)
		return r;
	if (!m.spec || !m.spec->limits || m.pid <= 1)
		return -EBADMSG;
	if (view_to_str(m.id, b->spec.id, sizeof(b->spec.id)) < 0 ||
	    view_to_str(m.spec->hostname, b->spec.hostname, sizeof(b->spec.hostname)) < 0 ||
	    view_to_str(m.spec->image, b->image, sizeof(b->image)) < 0)
		return -EBADMSG;
	/* Before there was a choice it was this. */
	struct view backend = m.spec->backend.n ? m.spec->backend : VIEW(SPEC_BACKEND_NATIVE);
	if (view_to_str(backend, b->spec.backend, sizeof(b->spec.backend)) < 0)
		return -EBADMSG;
	b->in.id = b->spec.id;
	b->in.pid = (pid_t)m.pid;
	b->started = m.started;
	b->slot = m.slot;
	/* Likewise, or nothing where that was not to be had. */
	b->in.capture = netns_capture_name((enum netns_capture)m.capture) ? (enum netns_capture)m.capture
									  : NETNS_SK_LOOKUP;
	box_table_fields(m.spec, &b->spec);
	b->features = m.features;
	b->spec.require = m.spec->require;
	if (box_limits_from_wire(m.spec->limits, m.spec->disk_bytes, &b->spec.limits) < 0)
		return -EBADMSG;
	struct spec_workspaces w;
	return workdirs_read(m.spec, &w, NULL) < 0 ? -EBADMSG : box_table_take(b, &w);
}

int box_table_load(int run_box, struct keeper_box *b)
{
	struct buf text = BUF_INIT(65536);
	struct arena a = ARENA_INIT(65536);
	int r = fd_slurp(run_box, "state", &text);
	if (r == 0)
		r = read_state(buf_view(&text), &a, b);
	arena_done(&a);
	buf_done(&text);
	if (r < 0)
		return r;
	/* First hold the process, then look whether it is the one: its pid may be another's by now. */
	_cleanup_(closep) int pidfd = (int)syscall(SYS_pidfd_open, b->in.pid, 0);
	uint64_t started;
	if (pidfd < 0 || spawn_start_time(b->in.pid, &started) < 0 || started != b->started)
		return -ESRCH;
	b->in.pidfd = TAKE_FD(pidfd);
	return 0;
}
