/*
 * The files of an agent, and its image: see agent.h.
 *
 * The image is a template's: a box with the image of the agent's runtime gets the files, installs what the
 * lock file names, and becomes a snapshot. Lock files decide what is installed, and the box reaches
 * package registries only. What an install script of a package does, it does in that box.
 */
#include "agents.h"

#include <errno.h>
#include <stdlib.h>

#include "core_base.h"
#include "log.h"
#include "net.h"
#include "policies.h"
#include "templates.h"
#include "poison.h"

#define CODE_HASH "agentcode"

/* Lines of stderr that begin with "agent: " say why, for people. $1 is the entry file. */
#define SCRIPT_HEAD                                                                                          \
	"set -e; mkdir -p " AGENT_FILES "; cd " AGENT_CODE "\n"                                              \
	"say() { echo \"agent: $*\" >&2; exit 1; }\n"                                                        \
	"[ ! -e Dockerfile ] || say 'a Dockerfile of its own is not supported: remove it. The image is "     \
	"made "                                                                                              \
	"from the runtime and the lock file'\n"                                                              \
	"entry=%.*s\n"                                                                                       \
	"[ -f \"$entry\" ] || say \"the entrypoint $entry is not among the agent's files\"\n"

static const char node_script[] = SCRIPT_HEAD
	"command -v node >/dev/null || say 'the image has no node: see agents.node of the configuration'\n"
	"if [ -f package-lock.json ] || [ -f npm-shrinkwrap.json ]; then\n"
	"  command -v npm >/dev/null || say 'the image has no npm: see agents.node of the configuration'\n"
	"  npm ci --omit=dev --no-audit --no-fund --no-update-notifier --cache /tmp/.npm ||\n"
	"    say 'npm ci failed'\n"
	"  rm -rf /tmp/.npm\n"
	"elif [ -f package.json ]; then\n"
	"  node -e 'const p = JSON.parse(require(\"fs\").readFileSync(\"package.json\"));"
	" process.exit(Object.keys(p.dependencies || {}).length ? 1 : 0)' ||\n"
	"    say 'package.json has dependencies, and there is no package-lock.json: run npm install and add "
	"it'\n"
	"fi\n";

static const char python_script[] = SCRIPT_HEAD
	"command -v python3 >/dev/null || say 'the image has no python3: see agents.python of the "
	"configuration'\n"
	"if [ -f requirements.txt ] && grep -q '^[^#[:space:]]' requirements.txt; then\n"
	"  python3 -m pip --version >/dev/null 2>&1 || say 'the image has no pip: see agents.python of the "
	"configuration'\n"
	"  python3 -m pip install --require-hashes --no-cache-dir --disable-pip-version-check --target "
	".packages -r requirements.txt ||\n"
	"    say 'pip install --require-hashes failed: make requirements.txt with pip-compile "
	"--generate-hashes'\n"
	"fi\n";

/* ---- the network ---- */

/* Of a box that runs an agent: the hosts that its manifest names. Of one that builds: package registries, as
 * far as this machine knows any. */
int agents_egress(struct agent *a, bool build, struct arena *arena, struct egress_policy *ret, struct err *e)
{
	static struct view registries[] = { VIEW("npm"), VIEW("pypi") };
	const struct json_strlist names = { registries, ELEMS(registries) };
	const struct json_strlist *hosts = build ? &names : &a->manifest.permissions.hosts;
	struct actor us = agents_actor(a);
	struct box_wish w = { 0 };
	const struct json *sets = build ? policies_sets_wish(a->core, &us, &w)->sets : NULL;

	*ret = (struct egress_policy){ .otherwise = EGRESS_DENY };
	ret->rules = arena_array(arena, MAX(hosts->n, 1u), sizeof(*ret->rules));
	if (!ret->rules)
		return err_sys(e, ERR_INTERNAL, ENOMEM, "agent");
	for (size_t i = 0; i < hosts->n; i++) {
		struct egress_rule *r = &ret->rules[ret->n_rules];
		char name[8];
		/* A machine without a set installs nothing from there, which the build says. */
		if (build && (view_to_str(hosts->items[i], name, sizeof(name)) < 0 || !json_get(sets, name)))
			continue;
		if (egress_target(arena, hosts->items[i], sets, r, e) < 0)
			return -1;
		r->verdict = EGRESS_ALLOW;
		ret->n_rules++;
	}
	return policies_wish(a->core, &us, &w, ret, e);
}

/* ---- the template ---- */

static struct template_build *build_of(struct agent *a)
{
	char name[32];
	struct actor us = agents_actor(a);
	struct err e = { 0 };

	agents_template_name(a, name);
	struct template *t = templates_find(a->core, &us, ACT_SNAPSHOT_READ, view_of(name), &e);
	return t ? (struct template_build *)templates_newest(t) : NULL;
}

int agents_build_prepare(struct agent *a, job_done *done, void *arg, struct err *e)
{
	char name[32];
	struct actor us = agents_actor(a);

	agents_template_name(a, name);
	const struct template_wish w = { .name = view_of(name) };
	return templates_request(a->core, &us, &w, done, arg, e) ? 0 : -1;
}

/* ---- the files ---- */

struct agent_upload {
	struct agent *agent;
	struct template_layer *layer;
};

struct agent_upload *agents_upload_open(struct core *c, const struct actor *actor, struct view ref,
					struct err *e)
{
	struct agent *a = agents_find(c, actor, ACT_AGENT_CHANGE, ref, e);
	struct template_build *b = a ? build_of(a) : NULL;
	struct actor us;
	char signature[65], until[24];
	int64_t expires;

	if (!a)
		return NULL;
	bool wanted = a->status == AGENT_WAITING || (a->next && a->next->step == AGENT_NEXT_WAITING);
	if (!wanted || a->upload || !b || b->status != TEMPLATE_WAITING) {
		err_set(e, ERR_STATE, "the agent has its files already: upgrade it");
		return NULL;
	}
	us = agents_actor(a);
	if (templates_layer_sign(c, &us, view_of(b->of->id), VIEW(CODE_HASH), signature, &expires, e) < 0)
		return NULL;
	struct agent_upload *u = calloc(1, sizeof(*u));
	struct buf text = BUF_INIT(sizeof(until));
	buf_printf(&text, "%lld", (long long)expires);
	if (u)
		u->layer = templates_layer_open(c, view_of(b->of->id), VIEW(CODE_HASH), buf_view(&text),
						view_of(signature), e);
	else
		err_sys(e, ERR_INTERNAL, ENOMEM, "upload");
	buf_done(&text);
	if (!u || !u->layer) {
		free(u);
		return NULL;
	}
	u->agent = a;
	a->upload = u;
	return u;
}

int agents_upload_write(struct agent_upload *u, struct view data, struct err *e)
{
	if (!u->agent)
		return err_set(e, ERR_NOT_FOUND, "no such agent");
	return templates_layer_write(u->layer, data, e);
}

void agents_upload_abort(struct agent_upload *u)
{
	if (!u)
		return;
	if (u->layer)
		templates_layer_abort(TAKE_PTR(u->layer));
	if (u->agent)
		u->agent->upload = NULL;
	free(u);
}

/* The agent goes; whoever uploads still has the upload. */
void agents_build_forget(struct agent *a)
{
	if (a->upload)
		a->upload->agent = NULL;
	a->upload = NULL;
}

static int begin_build(struct agent *a, struct err *e)
{
	const struct manifest *m = a->next ? &a->next->manifest : &a->manifest;
	bool node = m->runtime == MANIFEST_NODE;
	const struct config *cfg = a->core->config;
	struct template_build *b = build_of(a);
	struct arena tmp = ARENA_INIT(1u << 20);
	struct buf script = BUF_INIT(16u * 1024);
	struct egress_policy egress;
	struct view copy[] = { VIEW("."), VIEW(AGENT_CODE), VIEW("root:root") };
	struct actor us = agents_actor(a);
	int r = b ? agents_egress(a, true, &tmp, &egress, e)
		  : err_set(e, ERR_NOT_FOUND, "the agent's template is gone");

	/* The entrypoint is made of letters that mean nothing to a shell: manifest.c. */
	buf_printf(&script, node ? node_script : python_script, VIEW_ARG(m->entrypoint));
	struct view run[] = { buf_view(&script), VIEW("root") };
	struct template_step steps[] = {
		{ .type = VIEW("COPY"),
		  .args = { copy, ELEMS(copy) },
		  .hash = VIEW(CODE_HASH),
		  .force = true },
		{ .type = VIEW("RUN"), .args = { run, ELEMS(run) }, .force = true },
	};
	const struct template_plan plan = { .image = node ? cfg->agents.node : cfg->agents.python,
					    .start = VIEW(""),
					    .ready = VIEW(""),
					    .steps = steps,
					    .n = ELEMS(steps),
					    .force = true,
					    .egress = &egress };
	if (r >= 0)
		r = templates_begin(a->core, &us, b, &plan, e);
	buf_done(&script);
	arena_done(&tmp);
	return r;
}

/* The answer waits for the row: whoever is told that the files are there finds them so after a restart. */
struct commit {
	struct job job;
	struct core *core;
	char id[AGENT_ID + 1];
};

static void on_committed(void *arg, const struct err *e)
{
	struct commit *j = arg;
	const struct agent *a = agents_by_id(j->core, view_of(j->id));
	struct err gone = { 0 };

	core_store_result(j->core, e);
	err_set(&gone, ERR_NOT_FOUND, "the agent was removed");
	job_finish(&j->job, a, e ? e : a ? NULL : &gone);
	free(j);
}

struct job *agents_upload_commit(struct agent_upload *u, job_done *done, void *arg, struct err *e)
{
	struct agent *a = u->agent;
	struct commit *j = a && !a->removing ? calloc(1, sizeof(*j)) : NULL;

	if (!j) {
		if (a && !a->removing)
			err_sys(e, ERR_INTERNAL, ENOMEM, "upload");
		else
			err_set(e, ERR_NOT_FOUND, "no such agent");
		agents_upload_abort(u);
		return NULL;
	}
	templates_layer_commit(TAKE_PTR(u->layer));
	agents_upload_abort(u);
	if (begin_build(a, e) < 0) {
		free(j);
		return NULL;
	}
	*j = (struct commit){ .job = { .done = done, .arg = arg }, .core = a->core };
	memcpy(j->id, a->id, sizeof(j->id));
	if (a->next)
		a->next->step = AGENT_NEXT_BUILDING;
	else
		a->status = AGENT_BUILDING;
	agents_log_say(a, AGENT_BY_DAEMON, AGENT_INFO, "building the image");
	agents_save(a, on_committed, j);
	return &j->job;
}

/* ---- the end of a build ---- */

static void take_reason(const struct template_build *b, char ret[192])
{
	struct view why = view_of(b->reason);

	for (size_t i = 0; i < b->n_logs; i++) {
		struct view text = view_of(b->logs[i].text);
		if (b->logs[i].level == TEMPLATE_WARN && view_starts(text, "agent: "))
			why = view_skip(text, 7);
	}
	(void)!view_to_str(view_head(why, 191), ret, 192);
}

void agents_built(struct core *c, const struct template *t)
{
	static const enum agent_level levels[] = { [TEMPLATE_DEBUG] = AGENT_DEBUG,
						   [TEMPLATE_INFO] = AGENT_INFO,
						   [TEMPLATE_WARN] = AGENT_WARN,
						   [TEMPLATE_FAILURE] = AGENT_ERROR };
	const struct template_build *b = templates_newest(t);

	LIST_EACH (it, &c->agents->all) {
		struct agent *a = CONTAINER(it, struct agent, order);
		bool upgrade = a->next && a->next->step == AGENT_NEXT_BUILDING;
		if ((a->status != AGENT_BUILDING && !upgrade) || a->tenant != t->tenant || !b ||
		    build_of(a) != b || (b->status != TEMPLATE_READY && b->status != TEMPLATE_ERROR))
			continue;
		for (size_t i = 0; i < b->n_logs; i++)
			agents_log_line(a, AGENT_BY_BUILD, levels[b->logs[i].level],
					view_of(b->logs[i].text));
		if (upgrade) {
			char why[192] = "";
			take_reason(b, why);
			agents_upgrade_built(a, b->status == TEMPLATE_READY, why);
			continue;
		}
		a->reason[0] = 0;
		a->status = b->status == TEMPLATE_READY ? AGENT_STOPPED : AGENT_FAILED;
		if (a->status == AGENT_FAILED)
			take_reason(b, a->reason);
		agents_log_say(a, AGENT_BY_DAEMON, a->status == AGENT_FAILED ? AGENT_ERROR : AGENT_SUCCESS,
			       a->status == AGENT_FAILED ? "the image was not built: %s"
							 : "the image is built%s",
			       a->reason);
		agents_save(a, NULL, NULL);
	}
}

static void on_prepared_again(void *arg, const void *result, const struct err *e)
{
	if (e)
		log_warn("agents: a build cannot be prepared: %s", e->msg);
}

/* A build that waits for files does not survive a restart; the agent that waits for them does. */
static bool wait_again(struct agent *a)
{
	const struct template_build *b = build_of(a);
	struct err e = { 0 };

	if (b && b->status == TEMPLATE_WAITING)
		return true;
	if (agents_build_prepare(a, on_prepared_again, a->core, &e) >= 0)
		return true;
	log_warn("agent %s: %s", a->id, e.msg);
	return false;
}

void agents_build_recover(struct agent *a)
{
	const struct template_build *b = build_of(a);
	bool ready = b && b->status == TEMPLATE_READY;

	if (a->next)
		agents_upgrade_recover(a, ready, a->next->step == AGENT_NEXT_WAITING && wait_again(a));
	if ((a->status != AGENT_BUILDING && a->status != AGENT_WAITING) ||
	    (a->status == AGENT_WAITING && wait_again(a)))
		return;
	a->status = ready && a->status == AGENT_BUILDING ? AGENT_STOPPED : AGENT_FAILED;
	if (a->status == AGENT_FAILED)
		(void)!view_to_str(VIEW("the daemon was restarted during the build: upgrade the agent to "
					"build it again"),
				   a->reason, sizeof(a->reason));
	agents_save(a, NULL, NULL);
}
