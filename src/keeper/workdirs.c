/*
 * See workdirs.h.
 */
#include "workdirs.h"

#include "config.h"
#include "wire_gen.h"
#include "poison.h"

int workdirs_read(const struct wire_box_spec *w, struct spec_workspaces *ret, struct err *e)
{
	struct spec_workspaces s = { 0 };
	if (w->workspaces.n > SPEC_WORKSPACES)
		return err_set(e, ERR_INVALID, "workspaces: at most %d", SPEC_WORKSPACES);
	for (; s.n < w->workspaces.n; s.n++) {
		const struct wire_workspace_mount *from = &w->workspaces.items[s.n];
		struct view path = from->path.n ? from->path : VIEW(SPEC_WORKSPACE);
		if (!config_is_mount_point(path) || view_to_str(path, s.items[s.n].path, SPEC_MOUNT_PATH) < 0)
			return err_set(e, ERR_INVALID, "workspaces[%u]: nothing can be mounted there", s.n);
		if (view_to_str(from->id, s.items[s.n].id, sizeof(s.items[s.n].id)) < 0)
			return err_set(e, ERR_INVALID, "a workspace's id is too long");
		s.items[s.n].readonly = from->readonly;
	}
	*ret = s;
	return 0;
}

void workdirs_put(const struct spec_workspaces *w, struct wire_workspace_mount *room,
		  struct wire_box_spec *to)
{
	to->workspaces.items = room;
	to->workspaces.n = w ? w->n : 0;
	for (unsigned i = 0; w && i < w->n; i++)
		room[i] = (struct wire_workspace_mount){ .id = view_of(w->items[i].id),
							 .path = view_of(w->items[i].path),
							 .readonly = w->items[i].readonly };
}
