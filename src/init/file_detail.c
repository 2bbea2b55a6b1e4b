/*
 * What is asked for with `detail`: names of owner and group, where a symlink
 * leads in the end, and metadata, which are extended attributes below
 * user.e2b. All of it belongs to the box and may be anything: what does not fit
 * is left out.
 */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>

#include "wire_gen.h"
#include "poison.h"

#define PREFIX "user.e2b."

static int32_t resolved_type(mode_t mode)
{
	struct wire_file_info info;
	file_info(&(struct stat){ .st_mode = mode }, VIEW(""), &info);
	return info.type;
}

/* By the directory's descriptor: its own path may be longer than a path can be. */
static void resolve(const char *path, struct file_detail *room, struct wire_file_info *info)
{
	struct stat st;
	if (!realpath(path, room->resolved) || stat(room->resolved, &st) < 0)
		return;
	info->resolved = view_of(room->resolved);
	info->resolved_type = resolved_type(st.st_mode);
	info->resolved_mode = st.st_mode & 07777;
}

static void read_metadata(const char *path, struct file_detail *room)
{
	char list[FILE_METADATA_MAX];
	ssize_t n = llistxattr(path, list, sizeof(list));
	char *at = room->bytes, *end = room->bytes + sizeof(room->bytes);
	for (const char *name = list; n > 0 && name < list + n; name += strlen(name) + 1) {
		size_t name_n = strlen(name), key = name_n - MIN(name_n, strlen(PREFIX));
		if (strncmp(name, PREFIX, strlen(PREFIX)) != 0 || key == 0 || (size_t)(end - at) < key + 1 ||
		    room->n_metadata == FILE_METADATA_N)
			continue;
		ssize_t value_n = lgetxattr(path, name, at + key, (size_t)(end - at) - key);
		if (value_n < 0)
			continue;
		memcpy(at, name + strlen(PREFIX), key);
		room->metadata[room->n_metadata++] = (struct wire_env_var){
			.name = { at, key },
			.value = { at + key, (size_t)value_n },
		};
		at += key + (size_t)value_n;
	}
}

void file_detail(int dir, const char *name, const struct user_names *names, struct file_detail *room,
		 struct wire_file_info *info)
{
	char path[PATH_MAX];
	int n = dir == AT_FDCWD ? snprintf(path, sizeof(path), "%s", name)
				: snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, name);
	info->owner = user_name_of(names, info->uid, room->owner);
	info->group = user_group_of(names, info->gid, room->group);
	if (n < 0 || (size_t)n >= sizeof(path))
		return;
	room->n_metadata = 0;
	if (info->type == WIRE_FILE_TYPE_SYMLINK)
		resolve(path, room, info);
	else
		read_metadata(path, room);
	info->metadata.items = room->metadata;
	info->metadata.n = room->n_metadata;
}

int file_set_metadata(int fd, const struct wire_env_var *vars, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char name[256];
		int len = snprintf(name, sizeof(name), PREFIX "%.*s", VIEW_ARG(vars[i].name));
		if (len < 0 || (size_t)len >= sizeof(name) || vars[i].name.n == 0 ||
		    memchr(vars[i].name.p, 0, vars[i].name.n))
			return -EINVAL;
		if (fsetxattr(fd, name, vars[i].value.n ? vars[i].value.p : "", vars[i].value.n, 0) < 0)
			return -errno;
	}
	return 0;
}
