/*
 * What PID 1 says about files, checked and in the core's own form: see files_info.h.
 */
#include "files_info.h"

#include <errno.h>

#include "wire_gen.h"
#include "poison.h"

#define NAME_BYTES_MAX 4096

/* They are cast into each other. */
static_assert((int)FILE_TYPE_FILE == WIRE_FILE_TYPE_FILE && (int)FILE_TYPE_DEVICE == WIRE_FILE_TYPE_DEVICE,
	      "types of files");
static_assert((int)FILE_EVENT_CREATE == WIRE_FILE_EVENT_CREATE &&
		      (int)FILE_EVENT_OVERFLOW == WIRE_FILE_EVENT_OVERFLOW,
	      "kinds of events");

const char *files_type_name(enum file_type type)
{
	static const char *const names[FILE_TYPES] = {
		[FILE_TYPE_NONE] = "unknown",        [FILE_TYPE_FILE] = "file",
		[FILE_TYPE_DIRECTORY] = "directory", [FILE_TYPE_SYMLINK] = "symlink",
		[FILE_TYPE_FIFO] = "fifo",           [FILE_TYPE_SOCKET] = "socket",
		[FILE_TYPE_DEVICE] = "device",
	};
	return type < FILE_TYPES ? names[type] : names[0];
}

const char *files_event_name(enum file_event_kind kind)
{
	static const char *const names[FILE_EVENTS] = {
		[FILE_EVENT_NONE] = "unknown",      [FILE_EVENT_CREATE] = "create",
		[FILE_EVENT_WRITE] = "write",       [FILE_EVENT_REMOVE] = "remove",
		[FILE_EVENT_RENAME] = "rename",     [FILE_EVENT_CHMOD] = "chmod",
		[FILE_EVENT_OVERFLOW] = "overflow",
	};
	return kind < FILE_EVENTS ? names[kind] : names[0];
}

static enum file_type type_of(int32_t said)
{
	return said > 0 && said < FILE_TYPES ? (enum file_type)said : FILE_TYPE_NONE;
}

static int take_metadata(struct arena *a, const struct wire_file_info *w, struct json_strmap *ret)
{
	*ret = (struct json_strmap){ 0 };
	if (!w->metadata.n)
		return 0;
	ret->keys = arena_array(a, w->metadata.n, sizeof(*ret->keys));
	ret->values = arena_array(a, w->metadata.n, sizeof(*ret->values));
	if (!ret->keys || !ret->values)
		return -ENOMEM;
	for (; ret->n < w->metadata.n; ret->n++) {
		ret->keys[ret->n] = w->metadata.items[ret->n].name;
		ret->values[ret->n] = w->metadata.items[ret->n].value;
	}
	return 0;
}

/* It is shown and computed with: nothing out of range gets further than here. */
int files_info_take(struct arena *a, const struct wire_file_info *w, struct file_info *ret)
{
	if (w->size > INT64_MAX || w->name.n > NAME_BYTES_MAX || w->target.n > NAME_BYTES_MAX ||
	    w->path.n > NAME_BYTES_MAX || w->resolved.n > NAME_BYTES_MAX || w->owner.n > NAME_BYTES_MAX ||
	    w->group.n > NAME_BYTES_MAX || w->metadata.n > FILES_METADATA_MAX)
		return -EBADMSG;
	*ret = (struct file_info){
		.name = w->name,
		.path = w->path,
		.target = w->target,
		.owner = w->owner,
		.group = w->group,
		.resolved = w->resolved,
		.type = type_of(w->type),
		.resolved_type = type_of(w->resolved_type),
		.size = w->size,
		.mode = w->mode & 07777,
		.resolved_mode = w->resolved_mode & 07777,
		.uid = w->uid,
		.gid = w->gid,
		.mtime_ms = w->mtime_ms,
		.atime_ms = w->atime_ms,
		.ctime_ms = w->ctime_ms,
	};
	return take_metadata(a, w, &ret->metadata);
}

int files_info_entries(struct arena *a, const struct wire_file_entries *w, struct file_info **ret)
{
	struct file_info *list = arena_array(a, w->entries.n, sizeof(*list));
	int r = list ? 0 : -ENOMEM;

	for (size_t i = 0; r >= 0 && i < w->entries.n; i++)
		r = files_info_take(a, &w->entries.items[i], &list[i]);
	*ret = list;
	return r;
}

int files_info_matches(struct arena *a, const struct wire_grep_matches *w, struct file_match **ret)
{
	struct file_match *list = arena_array(a, w->matches.n, sizeof(*list));

	*ret = list;
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < w->matches.n; i++) {
		const struct wire_grep_match *m = &w->matches.items[i];
		if (m->path.n > NAME_BYTES_MAX)
			return -EBADMSG;
		list[i] = (struct file_match){ m->path, m->text, m->line, m->column };
	}
	return 0;
}

int files_info_events(struct arena *a, const struct wire_file_events *w, struct file_event **ret)
{
	struct file_event *list = arena_array(a, w->events.n, sizeof(*list));

	*ret = list;
	if (!list)
		return -ENOMEM;
	for (size_t i = 0; i < w->events.n; i++) {
		const struct wire_file_event *v = &w->events.items[i];
		if (v->path.n > NAME_BYTES_MAX || v->old_path.n > NAME_BYTES_MAX)
			return -EBADMSG;
		list[i] = (struct file_event){
			.kind = v->kind > 0 && v->kind < FILE_EVENTS ? (enum file_event_kind)v->kind
								     : FILE_EVENT_NONE,
			.path = v->path,
			.old_path = v->old_path,
			.directory = v->directory,
		};
	}
	return 0;
}
