/*
 * See volume.h. tar reads the directory with our rights and writes the owner that the
 * files are to have in the sandbox; its PID 1 unpacks.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>

#include "num.h"
#include "source.h"
#include "text.h"
#include "volume.h"

#include "poison.h"

#define UNPACK_MS (10 * 60 * 1000)

struct volume {
	struct view dir, path;
	bool readonly;
};

static int read_volume(const char *text, struct volume *ret, struct err *e)
{
	struct view rest, mode = VIEW_NONE;
	struct volume v = { .dir = view_split(view_of(text), ':', &rest) };

	v.path = rest.p ? view_split(rest, ':', &mode) : VIEW_NONE;
	v.readonly = mode.p && view_is(mode, "ro");
	if (v.dir.n == 0 || v.path.n == 0 || v.path.p[0] != '/' ||
	    (mode.p && !v.readonly && !view_is(mode, "rw")))
		return err_set(e, ERR_INVALID, "--volume wants DIR:/PATH or DIR:/PATH:ro, not \"%.100s\"",
			       text);
	*ret = v;
	return 0;
}

int volume_check_all(const struct opt_list *volumes, struct err *e)
{
	for (size_t i = 0; i < volumes->n; i++) {
		char path[4096];
		struct volume v;
		struct stat st;

		if (read_volume(volumes->items[i], &v, e) < 0)
			return -1;
		if (view_to_str(v.dir, path, sizeof(path)) < 0 || stat(path, &st) < 0)
			return err_sys(e, ERR_INVALID, errno, "--volume: %.*s", (int)MIN(v.dir.n, 120u),
				       v.dir.p);
		if (!S_ISDIR(st.st_mode))
			return err_set(e, ERR_INVALID, "--volume: %.120s is not a directory", path);
	}
	return 0;
}

/* The uid and gid of the sandbox's user, by its home directory where it is only known by name. */
static void find_owner(struct session *s, const char *id, struct view user, uint64_t *ret_uid,
		       uint64_t *ret_gid)
{
	_cleanup_(buf_done) struct buf path = BUF_INIT(4096);
	struct session_call call = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
	const struct json *uid, *gid;
	struct json *answer;
	struct err e = { 0 };

	*ret_uid = *ret_gid = view_is(user, "root") ? 0 : 1000;
	if (view_is(user, "root"))
		return;
	if (num_u64(user, ret_uid) == 0) {
		*ret_gid = *ret_uid;
		return;
	}
	*ret_uid = 1000;
	buf_printf(&path, "/v1/sandboxes/%s/fs/stat?path=/home/", id);
	text_percent_all(&path, user);
	call.path = buf_view(&path);
	if (session_call(s, &call, &answer, &e) < 0 || !answer)
		return;
	uid = json_get(answer, "uid");
	gid = json_get(answer, "gid");
	if (uid && gid && json_to_u64(uid, ret_uid) == 0 && json_to_u64(gid, ret_gid) == 0)
		return;
	*ret_uid = *ret_gid = 1000;
}

static bool is_there(struct session *s, const char *id, struct view path)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(64u << 10);
	struct session_call call = { .method = "GET", .timeout_ms = SESSION_CALL_MS };
	struct json *answer;
	struct err e = { 0 };

	buf_printf(&url, "/v1/sandboxes/%s/fs/stat?user=root&path=", id);
	text_percent_all(&url, path);
	call.path = buf_view(&url);
	return session_call(s, &call, &answer, &e) >= 0;
}

/* The directory that the copy is in, where the copy has made it: whoever may change the files may add some.
 */
static int give_away(struct session *s, const char *id, struct view path, const struct source_wish *w,
		     struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(256), body = BUF_INIT(64u << 10);
	struct session_call call = { .method = "POST", .timeout_ms = SESSION_CALL_MS };
	char owner[48];
	struct json_out o;
	struct json *answer;

	snprintf(owner, sizeof(owner), "%llu:%llu", (unsigned long long)w->uid, (unsigned long long)w->gid);
	buf_printf(&url, "/v1/sandboxes/%s/fs/chmod", id);
	json_out_init(&o, &body);
	json_out_object(&o);
	json_out_kstr(&o, "path", path);
	json_out_kz(&o, "owner", owner);
	json_out_kz(&o, "user", "root");
	json_out_end(&o, '}');
	if (body.bad)
		return err_set(e, ERR_INVALID, "the path is too long");
	call.path = buf_view(&url);
	call.body = buf_view(&body);
	return session_call(s, &call, &answer, e);
}

static int copy(struct session *s, const char *id, struct view user, const char *text, struct err *e)
{
	_cleanup_(buf_done) struct buf url = BUF_INIT(64u << 10), answer = BUF_INIT(64u << 10);
	_cleanup_(source_done) struct source source = SOURCE_INIT;
	struct client_request rq = {
		.method = "PUT",
		.content_type = "application/x-tar",
		.streamed = true,
		.at_end = source_check,
		.ctx = &source,
		.body_size = -1,
		.timeout_ms = UNPACK_MS,
	};
	struct source_wish wish = { 0 };
	char dir[4096];
	struct response r;
	struct volume v;

	if (read_volume(text, &v, e) < 0)
		return -1;
	if (view_to_str(v.dir, dir, sizeof(dir)) < 0)
		return err_set(e, ERR_INVALID, "the path is too long");
	wish = (struct source_wish){ .owned = true, .readonly = v.readonly };
	if (!v.readonly)
		find_owner(s, id, user, &wish.uid, &wish.gid);
	buf_printf(&url, "/v1/sandboxes/%s/files", id);
	text_percent(&url, v.path);
	buf_puts(&url, "?archive=tar&user=root");
	if (url.bad)
		return err_set(e, ERR_INVALID, "the path is too long");
	if (source_open_dir(&source, dir, NULL, &wish, e) < 0)
		return -1;
	rq.path = buf_view(&url);
	rq.body_fd = source.fd;
	bool made = !v.readonly && !is_there(s, id, v.path);
	if (session_send(s, &rq, &r, e) < 0 || client_read_all(&s->client, &answer, e) < 0 ||
	    (made && give_away(s, id, v.path, &wish, e) < 0))
		return err_wrap(e, "--volume %.60s", text);
	return 0;
}

int volume_copy_all(struct session *s, const struct json *box, const struct opt_list *volumes, struct err *e)
{
	const char *id = volumes->n ? arena_str(s->arena, session_text(box, "id")) : NULL;

	for (size_t i = 0; i < volumes->n; i++)
		if (!id || copy(s, id, session_text(box, "user"), volumes->items[i], e) < 0)
			return id ? -1 : err_set(e, ERR_INTERNAL, "out of memory");
	return 0;
}
