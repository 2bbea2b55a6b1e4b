/*
 * POST /v1/sandboxes from flags. The daemon judges the values; only what would
 * not arrive as it was typed is refused here.
 */
#include <fcntl.h>
#include <stdlib.h>

#include "create.h"
#include "fd.h"
#include "text.h"

#include "poison.h"

#define BODY_MAX      (16u << 20)
#define LINE_MAX_SIZE (4u << 20)
#define ENV_FILE_MAX  (1u << 20)

#define AT(member) offsetof(struct create_flags, member)

/* The option of a field that has one: behind the flag and its help comes what its kind is. */
#define OPTION_BOOL    .kind = OPT_FLAG
#define OPTION_NOT     .kind = OPT_FLAG
#define OPTION_SECONDS .kind = OPT_MS, .arg = "TIME"
#define OPTION_TEXT    .kind = OPT_TEXT, .arg = "TEXT"
#define OPTION_REST(kind_, at)                                                                               \
	.offset = AT(at), OPTION_##kind_                                                                     \
	}                                                                                                    \
	,
#define OPTION_NONE(kind_, at)
#define RUN_RUN_FLAG(flag, words)                                                                            \
	{                                                                                                    \
		flag, .help = words, OPTION_REST
#define RUN_LIFE_FLAG(flag, words) OPTION_NONE
#define RUN_NO_FLAG                OPTION_NONE
#define LIFE_RUN_FLAG(flag, words) OPTION_NONE
#define LIFE_LIFE_FLAG(flag, words)                                                                          \
	{                                                                                                    \
		flag, .help = words, OPTION_REST
#define LIFE_NO_FLAG OPTION_NONE

const struct opt create_opts[CREATE_OPTS] = {
	{ "image", 'i', OPT_TEXT, AT(image), "IMAGE", "the image to start from" },
	{ "user", 'u', OPT_TEXT, AT(user), "USER", "the user that commands run as" },
	{ "env", 'e', OPT_ENV, AT(env), "KEY[=VALUE]",
	  "a variable for every command; without a value ours of that name; may be repeated" },
	{ "env-file", 0, OPT_LIST, AT(env_file), "FILE",
	  "variables from the lines of a file; may be repeated" },
	{ "volume", 'v', OPT_LIST, AT(volumes), "DIR:PATH[:ro]",
	  "copy this directory into the sandbox; may be repeated" },
	{ "mount", 0, OPT_LIST, AT(mounts), "DIR:PATH[:ro]",
	  "mount this directory of the daemon's machine; its administrator must allow it; may be repeated" },
	{ "workdir", 'w', OPT_TEXT, AT(workdir), "DIR", "the directory that commands start in" },
	{ "tz", 0, OPT_TEXT, AT(timezone), "ZONE", "the time zone, such as Europe/Berlin" },
#define LIMIT(kind, name, member, wire, min, max, standard, most, change, flag, letter, help)                \
	CREATE_LIMIT(kind, AT(limits.name), flag, letter, help),
#include "box_limits.def"
#undef LIMIT
	{ "snapshot", 0, OPT_TEXT, AT(snapshot), "SNAPSHOT", "start from this snapshot instead of an image" },
	{ "workspace", 0, OPT_LIST, AT(workspaces), "WORKSPACE[:PATH][:ro]",
	  "mount this workspace at PATH, by default /workspace; may be repeated" },
	{ "backend", 0, OPT_TEXT, AT(backend), "NAME", "the kind of isolation, such as native" },
#define FIELD(kind, name, json, shown, wire, twin, pool, change, update, flag) RUN_##flag(kind, name)
#include "box_fields.def"
#undef FIELD
	{ "allow", 0, OPT_LIST, AT(allow), "TARGET",
	  "what it may reach: sets, hosts, networks, separated by commas; may be repeated" },
	{ "secret-env", 0, OPT_PAIRS, AT(secret_env), "KEY=NAME",
	  "a variable with the value of the secret NAME; may be repeated" },
	{ "secret-file", 0, OPT_PAIRS, AT(secret_file), "FILE=NAME",
	  "/run/secrets/FILE with the value of the secret NAME; may be repeated" },
	{ "require", 0, OPT_LIST, AT(require), "FEATURE",
	  "what its walls must have, such as landlock.scopes; may be repeated" },
	/* from here on not for run, whose boxes have no life of their own */
	[CREATE_RUN_OPTS] = { "name", 'n', OPT_TEXT, AT(name), "NAME", "a name to use instead of the id" },
	{ "ttl", 0, OPT_MS, AT(ttl_ms), "TIME",
	  "end the sandbox after this time (seconds, or with s, m, h, d)" },
	{ "on-end", 0, OPT_TEXT, AT(on_end), "WHAT", "what its end is: delete (the default), stop or pause" },
#define FIELD(kind, name, json, shown, wire, twin, pool, change, update, flag) LIFE_##flag(kind, name)
#include "box_fields.def"
#undef FIELD
	{ "metadata", 0, OPT_PAIRS, AT(metadata), "KEY=VALUE", "a label; may be repeated" },
};

static int check_list(const struct opt_list *l, const char *what, struct err *e)
{
	for (size_t i = 0; i < l->n; i++)
		if (create_check_text(l->items[i], what, e) < 0)
			return -1;
	return 0;
}

int create_check_text(const char *text, const char *what, struct err *e)
{
	if (text && !text_is_utf8(view_of(text)))
		return err_set(e, ERR_INVALID, "%s is not valid UTF-8", what);
	return 0;
}

void create_pairs(struct json_out *o, const char *key, const struct opt_list *pairs)
{
	if (pairs->n == 0)
		return;
	json_out_key(o, key);
	json_out_object(o);
	for (size_t i = 0; i < pairs->n; i++) {
		struct view value, name = view_split(view_of(pairs->items[i]), '=', &value);
		bool again = false;

		/* The last of several wins, as in a shell; a key twice would not be JSON to the daemon. */
		for (size_t k = i + 1; k < pairs->n && !again; k++)
			again = strncmp(pairs->items[k], pairs->items[i], name.n + 1) == 0;
		if (again)
			continue;
		json_out_key_view(o, name);
		json_out_str(o, value);
	}
	json_out_end(o, '}');
}

static void put_secrets(struct json_out *o, const struct opt_list *pairs, const char *where)
{
	for (size_t i = 0; pairs && i < pairs->n; i++) {
		struct view secret, name = view_split(view_of(pairs->items[i]), '=', &secret);

		json_out_object(o);
		json_out_kstr(o, "name", secret);
		json_out_kstr(o, where, name);
		json_out_end(o, '}');
	}
}

void create_secrets(struct json_out *o, const struct opt_list *env, const struct opt_list *file)
{
	if (env->n == 0 && (!file || file->n == 0))
		return;
	json_out_key(o, "secrets");
	json_out_array(o);
	put_secrets(o, env, "env");
	put_secrets(o, file, "file");
	json_out_end(o, ']');
}

static void put_text(struct json_out *o, const char *key, const char *text)
{
	if (text)
		json_out_kz(o, key, text);
}

void create_put_place(struct json_out *o, const char *user, const char *workdir, const struct opt_list *env)
{
	put_text(o, "user", user);
	put_text(o, "cwd", workdir);
	create_pairs(o, "env", env);
}

static void put_count(struct json_out *o, const char *key, uint64_t n)
{
	if (n)
		json_out_ku64(o, key, n);
}

void create_put_limits(struct json_out *o, const struct box_limits_wish *l)
{
	static const struct box_limits_wish none;

	if (!json_equal(&box_limits_set_schema, l, &none))
		json_out_kwrite(o, "limits", &box_limits_set_schema, l);
}

/* "NAME", "NAME:/PATH", and either with ":ro" or ":rw". */
static int put_workspaces(struct json_out *o, const struct opt_list *list, struct err *e)
{
	if (!list->n)
		return 0;
	json_out_key(o, "workspaces");
	json_out_array(o);
	for (size_t i = 0; i < list->n; i++) {
		struct view rest, name = view_split(view_of(list->items[i]), ':', &rest), path = VIEW_NONE;

		if (rest.p && view_starts(rest, "/"))
			path = view_split(rest, ':', &rest);
		if (!name.n || (rest.p && !view_is(rest, "ro") && !view_is(rest, "rw")))
			return err_set(e, ERR_INVALID,
				       "--workspace wants NAME, NAME:/PATH or NAME:/PATH:ro, not \"%.100s\"",
				       list->items[i]);
		json_out_object(o);
		json_out_kstr(o, "name", name);
		if (path.p)
			json_out_kstr(o, "path", path);
		if (rest.p)
			json_out_kstr(o, "mode", rest);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	return 0;
}

static void put_egress(struct json_out *o, const struct opt_list *allow)
{
	if (!allow->n)
		return;
	json_out_key(o, "egress");
	json_out_object(o);
	json_out_key(o, "allow");
	json_out_array(o);
	for (size_t i = 0; i < allow->n; i++)
		for (struct view rest = view_of(allow->items[i]); rest.p;)
			json_out_str(o, view_split(rest, ',', &rest));
	json_out_end(o, ']');
	json_out_end(o, '}');
}

/* ---- --env-file ---- */

/* Lines "KEY=VALUE", or "KEY" for ours of that name; empty lines and those that begin with '#' say nothing.
 */
static int take_env_line(struct arena *a, struct view line, const char *file, struct opt_list *to,
			 struct err *e)
{
	struct view value, key;
	const char *pair = NULL;

	line = view_trim(line);
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (line.n == 0 || line.p[0] == '#')
		return 0;
	key = view_split(line, '=', &value);
	if (key.n == 0 || memchr(line.p, 0, line.n))
		return err_set(e, ERR_INVALID, "%.100s: a line is not KEY=VALUE: \"%.*s\"", file,
			       (int)MIN(line.n, 40u), line.p);
	pair = arena_str(a, line);
	if (pair && !value.p) {
		_cleanup_(buf_done) struct buf b = BUF_INIT(1u << 20);

		if (!getenv(pair))
			return 0;
		buf_printf(&b, "%s=%s", pair, getenv(pair));
		pair = b.bad ? NULL : arena_str(a, buf_view(&b));
	}
	if (!pair)
		return err_set(e, ERR_INTERNAL, "out of memory");
	to->items[to->n++] = pair;
	return 0;
}

static size_t count_lines(struct view v)
{
	size_t n = 1;

	for (size_t i = 0; i < v.n; i++)
		n += v.p[i] == '\n';
	return n;
}

int create_env_files(struct arena *a, const struct opt_list *files, struct opt_list *env, struct err *e)
{
	for (size_t i = files->n; i-- > 0;) { /* the last file is the nearest to the list */
		_cleanup_(buf_done) struct buf text = BUF_INIT(ENV_FILE_MAX);
		struct opt_list all = { 0 };
		int r = fd_slurp(AT_FDCWD, files->items[i], &text);

		if (r < 0)
			return err_sys(e, ERR_INVALID, r, "cannot read %.120s", files->items[i]);
		all.items = arena_array(a, count_lines(buf_view(&text)) + env->n + 1, sizeof(*all.items));
		if (!all.items)
			return err_set(e, ERR_INTERNAL, "out of memory");
		for (struct view rest = buf_view(&text); rest.n;)
			if (take_env_line(a, view_split(rest, '\n', &rest), files->items[i], &all, e) < 0)
				return -1;
		for (size_t k = 0; k < env->n; k++)
			all.items[all.n++] = env->items[k];
		*env = all;
	}
	return 0;
}

/* ---- the request ---- */

static uint64_t whole_seconds(uint64_t ms)
{
	return ms / 1000 + (ms % 1000 != 0);
}

static int check_flags(const struct create_flags *f, struct err *e)
{
	if (create_check_text(f->name, "--name", e) < 0 || create_check_text(f->image, "--image", e) < 0 ||
	    create_check_text(f->user, "--user", e) < 0 ||
	    create_check_text(f->workdir, "--workdir", e) < 0 ||
	    create_check_text(f->timezone, "--tz", e) < 0 ||
	    create_check_text(f->snapshot, "--snapshot", e) < 0 ||
	    create_check_text(f->backend, "--backend", e) < 0 ||
	    create_check_text(f->on_end, "--on-end", e) < 0 || check_list(&f->env, "--env", e) < 0 ||
	    check_list(&f->metadata, "--metadata", e) < 0 || check_list(&f->mounts, "--mount", e) < 0 ||
	    check_list(&f->workspaces, "--workspace", e) < 0 || check_list(&f->allow, "--allow", e) < 0 ||
	    check_list(&f->require, "--require", e) < 0 ||
	    check_list(&f->secret_env, "--secret-env", e) < 0 ||
	    check_list(&f->secret_file, "--secret-file", e) < 0)
		return -1;
	return 0;
}

/* DIR:PATH or DIR:PATH:ro; the directory is the daemon's, so that only its form is judged here. */
static int put_mounts(struct json_out *o, const struct opt_list *mounts, struct err *e)
{
	if (!mounts->n)
		return 0;
	json_out_key(o, "mounts");
	json_out_array(o);
	for (size_t i = 0; i < mounts->n; i++) {
		struct view rest, mode = VIEW("rw");
		struct view dir = view_split(view_of(mounts->items[i]), ':', &rest);
		struct view path = rest.p ? view_split(rest, ':', &rest) : VIEW_NONE;

		mode = rest.p ? rest : mode;
		if (!view_starts(dir, "/") || !view_starts(path, "/") ||
		    (!view_is(mode, "ro") && !view_is(mode, "rw")))
			return err_set(e, ERR_INVALID,
				       "--mount wants /DIR:/PATH or /DIR:/PATH:ro, not \"%.100s\"",
				       mounts->items[i]);
		json_out_object(o);
		json_out_kstr(o, "source", dir);
		json_out_kstr(o, "path", path);
		json_out_kstr(o, "mode", mode);
		json_out_end(o, '}');
	}
	json_out_end(o, ']');
	return 0;
}

/* By the kind of a field; what was not given is not sent. */
static void put_BOOL(struct json_out *o, const char *key, bool v)
{
	if (v)
		json_out_kbool(o, key, true);
}

static void put_NOT(struct json_out *o, const char *key, bool v)
{
	if (v)
		json_out_kbool(o, key, false);
}

static void put_SECONDS(struct json_out *o, const char *key, uint64_t ms)
{
	put_count(o, key, whole_seconds(ms));
}

#define put_TEXT put_text
#define put_ZONE put_text
#define put_HOST put_text

static int put_request(struct arena *a, const struct create_flags *f, bool tied, struct buf *b, struct err *e)
{
	struct opt_list env = f->env;
	struct json_out o;

	if (check_flags(f, e) < 0 || create_env_files(a, &f->env_file, &env, e) < 0 ||
	    check_list(&env, "--env-file", e) < 0)
		return -1;
	json_out_init(&o, b);
	json_out_object(&o);
	put_text(&o, "name", f->name);
	put_text(&o, "image", f->image);
	put_text(&o, "backend", f->backend);
#define FIELD(kind, name, json, ...) put_##kind(&o, #json, f->name);
#include "box_fields.def"
#undef FIELD
	create_pairs(&o, "env", &env);
	create_pairs(&o, "metadata", &f->metadata);
	create_put_limits(&o, &f->limits);
	put_text(&o, "snapshot", f->snapshot);
	if (put_workspaces(&o, &f->workspaces, e) < 0)
		return -1;
	put_egress(&o, &f->allow);
	create_secrets(&o, &f->secret_env, &f->secret_file);
	if (put_mounts(&o, &f->mounts, e) < 0)
		return -1;
	put_count(&o, "ttl_seconds", whole_seconds(f->ttl_ms));
	put_text(&o, "on_end", f->on_end);
	if (tied)
		json_out_kbool(&o, "delete_on_disconnect", true);
	if (f->require.n) {
		json_out_key(&o, "require");
		json_out_array(&o);
		for (size_t i = 0; i < f->require.n; i++)
			json_out_str(&o, view_of(f->require.items[i]));
		json_out_end(&o, ']');
	}
	json_out_end(&o, '}');
	return b->bad ? err_set(e, ERR_TOO_LARGE, "too many options for one request") : 0;
}

int create_tied(struct session *s, const struct create_flags *f, struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(BODY_MAX), line = BUF_INIT(LINE_MAX_SIZE);
	struct client_request rq = { .method = "POST",
				     .path = VIEW("/v1/sandboxes"),
				     .content_type = "application/json",
				     .timeout_ms = SESSION_CALL_MS };
	struct response answer;
	struct view data, rest;
	int r;

	if (put_request(s->arena, f, true, &b, e) < 0)
		return -1;
	rq.body = buf_view(&b);
	if (session_send(s, &rq, &answer, e) < 0)
		return -1;
	/* The box is the first line; the answer goes on as long as the box does. */
	while (!buf_len(&line) || !memchr(buf_view(&line).p, '\n', buf_len(&line))) {
		r = client_read(&s->client, &data, e);
		if (r < 0)
			return -1;
		if (r == 0 || buf_add(&line, data) < 0)
			return err_set(e, ERR_INTERNAL, "the daemon did not say which sandbox it has made");
	}
	if (json_parse(s->arena, view_split(buf_view(&line), '\n', &rest), ret, e) < 0)
		return err_wrap(e, "the daemon's answer");
	return 0;
}

int create_box(struct session *s, const struct create_flags *f, struct json **ret, struct err *e)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT(BODY_MAX);
	struct session_call call = { .method = "POST",
				     .path = VIEW("/v1/sandboxes"),
				     .timeout_ms = SESSION_CALL_MS };
	struct json *box;

	if (put_request(s->arena, f, false, &b, e) < 0)
		return -1;
	call.body = buf_view(&b);
	if (session_call(s, &call, &box, e) < 0)
		return -1;
	if (!box || session_text(box, "id").n == 0)
		return err_set(e, ERR_INTERNAL, "the daemon made a sandbox but did not say its id");
	*ret = box;
	return 0;
}
