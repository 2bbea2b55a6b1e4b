/*
 * Sets of hosts from package managers' configuration, on a machine made of files.
 */
#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "config_sets.h"
#include "fd.h"
#include "poison.h"

static struct arena arena = ARENA_INIT(8u << 20);
static char root[64];

static void put(const char *path, const char *text)
{
	char full[512];

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *p = full + strlen(root) + 1; *p; p++)
		if (*p == '/') {
			*p = 0;
			mkdir(full, 0755);
			*p = '/';
		}
	assert_int_equal(fd_replace(AT_FDCWD, full, text, strlen(text), 0644, false), 0);
}

static int setup(void **state)
{
	snprintf(root, sizeof(root), "/tmp/sets-XXXXXX");
	return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state)
{
	char command[128];

	arena_done(&arena);
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	return system(command);
}

/* The sets as text, for a document and an environment. */
static struct view found(const char *text, char *const *env, const char *set)
{
	struct buf out = BUF_INIT(1u << 20);
	struct err e = { 0 };
	struct json *doc;
	struct json_out o;

	if (json_parse(&arena, view_of(text), &doc, &e) < 0 ||
	    config_sets_add(&arena, doc, root, env, &e) < 0)
		fail_msg("%s", e.msg);
	const struct json *sets = json_get(json_get(doc, "egress"), "sets");
	const struct json *one = sets ? json_get(sets, set) : NULL;
	if (!one)
		return VIEW_NONE;
	json_out_init(&o, &out);
	json_out_value(&o, one);
	struct view v = arena_view(&arena, buf_view(&out));
	buf_done(&out);
	return v;
}

static void is(const char *doc, char *const *env, const char *set, const char *want)
{
	struct view v = found(doc, env, set);

	if (want ? !view_is(v, want) : v.p != NULL)
		fail_msg("%s is %.*s", set, VIEW_ARG(v));
}

static char *const home[] = { (char *)"HOME=/root", NULL };

/* A machine without pip, npm and apt knows no such set, rather than an empty one. */
static void test_bare(void **state)
{
	is("{}", home, "pypi", NULL);
	is("{}", home, "npm", NULL);
	is("{}", home, "apt", NULL);
	assert_true(found("{}", home, "github").n > 2);
}

static void test_own(void **state)
{
	put("/usr/lib/python3/dist-packages/pip/_internal/models/index.py",
	    "x = 'https://other.test/'\n\nPyPI = PackageIndex(\"https://index.test/\", "
	    "file_storage_domain=\"files.test\")\n"
	    "TestPyPI = PackageIndex(\n    \"https://test.test/\"\n)\n");
	put("/usr/lib/node_modules/npm/node_modules/@npmcli/config/lib/definitions/definitions.js",
	    "  x: new Definition('y', {\n    default: 'https://no.test/',\n  }),\n"
	    "  registry: new Definition('registry', {\n    default: 'https://packages.test/',\n    type: "
	    "url,\n");
	is("{}", home, "pypi", "[\"index.test\",\"files.test\"]");
	is("{}", home, "npm", "[\"packages.test\"]");
}

/* A mirror of the machine's takes the place of what the tool would use; further indexes, and what only its
 * administrator uses, stand beside it. */
static void test_mirrors(void **state)
{
	char *const env[] = { (char *)"HOME=/root", (char *)"PIP_INDEX_URL=http://env.test:3141/simple",
			      NULL };

	test_own(state);
	put("/etc/pip.conf",
	    "[global]\n# index-url = https://comment.test/\nextra-index-url =\n    https://one.test/x\n"
	    "    https://user:secret@two.test:8443/y\ntimeout = 3\ncert = https://nothing.test/\n");
	is("{}", home, "pypi", "[\"index.test\",\"files.test\",\"one.test\",\"two.test:8443\"]");
	is("{}", env, "pypi",
	   "[\"index.test\",\"files.test\",\"one.test\",\"two.test:8443\",\"env.test:3141\"]");
	put("/root/.config/pip/pip.conf", "[install]\nindex_url: https://home.test/simple/\n");
	is("{}", home, "pypi",
	   "[\"index.test\",\"files.test\",\"one.test\",\"two.test:8443\",\"home.test\"]");
	put("/etc/pip.conf", "[global]\nindex_url: https://mirror.test/simple/\n");
	is("{}", home, "pypi", "[\"mirror.test\",\"home.test\"]");

	put("/root/.npmrc",
	    "; "
	    "registry=https://comment.test/\n@team:registry=https://team.test/\n//team.test/:_authToken=s\n");
	is("{}", home, "npm", "[\"packages.test\",\"team.test\"]");
	put("/etc/npmrc", "registry = \"https://npm.test/\"\n");
	is("{}", home, "npm", "[\"npm.test\",\"team.test\"]");
}

static void test_apt(void **state)
{
	put("/etc/os-release", "NAME=\"Debian\"\nID=debian\n");
	put("/etc/apt/sources.list",
	    "# deb http://comment.test/ x main\ndeb [signed-by=/k] http://list.test/debian x main # y\n"
	    "deb cdrom:[Debian]/ x main\n");
	put("/etc/apt/sources.list.d/a.sources",
	    "Types: deb\n# URIs: http://comment.test\nURIs: https://one.test/debian\n  "
	    "http://two.test:8080/x\nSuites: x\n\n"
	    "Types: deb\nURIs: http://off.test/\nEnabled: no\n");
	put("/etc/apt/sources.list.d/b.list.disabled", "deb http://disabled.test/ x main\n");
	is("{}", home, "apt", "[\"list.test\",\"one.test\",\"two.test:8080\"]");
	is("{}", home, "debian", "[\"list.test\",\"one.test\",\"two.test:8080\"]");
}

static void test_git(void **state)
{
	char want[512];
	struct view plain = found("{}", home, "github");

	put("/etc/gitconfig",
	    "[user]\n\tname = x\n[url \"https://mirror.test/gh/\"]\n\tinsteadOf = https://github.com/\n"
	    "[url \"https://other.test/\"]\n\tinsteadOf = https://elsewhere.test/\n");
	snprintf(want, sizeof(want), "%.*s,\"mirror.test\"]", (int)plain.n - 1, plain.p);
	is("{}", home, "github", want);
}

static void test_given(void **state)
{
	test_own(state);
	is("{\"egress\":{\"sets\":{\"pypi\":[\"mine.test\"]}}}", home, "pypi", "[\"mine.test\"]");
	is("{\"egress\":{\"sets\":{\"pypi\":[\"mine.test\"]}}}", home, "npm", "[\"packages.test\"]");
	is("{\"egress\":{\"detect\":false,\"sets\":{\"x\":[]}}}", home, "npm", NULL);
	is("{\"egress\":{\"detect\":false}}", home, "github", NULL);
	is("{\"egress\":null}", home, "npm", "[\"packages.test\"]");
}

/* ---- images ---- */

static bool read_text(const struct config_tree *t, const char *path, struct buf *out)
{
	char full[512];

	snprintf(full, sizeof(full), "%s/%.400s", root, path);
	return fd_slurp(AT_FDCWD, full, out) == 0;
}

static size_t list_names(const struct config_tree *t, const char *path, char (*names)[CONFIG_TREE_NAME],
			 size_t room)
{
	char full[512];
	size_t n = 0;

	snprintf(full, sizeof(full), "%s/%.400s", root, path);
	DIR *d = opendir(full);
	for (struct dirent *de; d && n < room && (de = readdir(d));)
		if (de->d_name[0] != '.')
			snprintf(names[n++], CONFIG_TREE_NAME, "%s", de->d_name);
	if (d)
		closedir(d);
	return n;
}

static struct view survey(void)
{
	static const struct config_tree tree = { read_text, list_names };
	struct buf out = BUF_INIT(CONFIG_SETS_RECORD);

	config_sets_survey(&arena, &tree, &out);
	assert_int_equal(out.bad, 0);
	struct view v = arena_view(&arena, buf_view(&out));
	buf_done(&out);
	return v;
}

static void surveyed(const char *want)
{
	struct view v = survey();

	if (!view_is(v, want))
		fail_msg("the record is %.*s", VIEW_ARG(v));
}

static void test_survey(void **state)
{
	surveyed("{\"sets\":{},\"more\":{}}");
	put("/usr/local/lib/python3.12/site-packages/pip/_internal/models/index.py",
	    "\nPyPI = PackageIndex(\"https://index.test/\", file_storage_domain=\"files.test\")\n");
	put("/etc/pip.conf", "[global]\nextra-index-url = https://extra.test/\n");
	put("/home/user/.npmrc", "@team:registry=https://team.test/\n");
	put("/root/.gitconfig", "[url \"https://mirror.test/gh/\"]\n\tinsteadOf = https://github.com/\n");
	surveyed("{\"sets\":{},\"more\":{\"pypi\":[\"extra.test\",\"index.test\",\"files.test\"],\"npm\":["
		 "\"team.test\"],"
		 "\"github\":[\"mirror.test\"]}}");
	put("/home/a/.config/pip/pip.conf", "[global]\nindex-url = https://home.test/simple\n");
	put("/root/.yarnrc.yml", "nodeLinker: pnp\nnpmRegistryServer: \"https://yarn.test\"\n");
	surveyed("{\"sets\":{\"pypi\":[\"extra.test\",\"home.test\"],\"npm\":[\"team.test\",\"yarn.test\"]},"
		 "\"more\":{\"github\":[\"mirror.test\"]}}");
}

static void test_survey_apt(void **state)
{
	put("/etc/os-release", "ID=github\n");
	put("/etc/apt/apt.conf", "Acquire::http::Proxy \"http://proxy.test:3128\";\n");
	surveyed("{\"sets\":{},\"more\":{}}"); /* a proxy alone says nothing */
	put("/etc/apt/sources.list",
	    "deb mirror+http://one.test/list x main\ndeb mirror://two.test/x x main\n"
	    "deb mirror+file:/etc/apt/list x main\n");
	put("/etc/apt/list", "# http://comment.test/\nhttps://three.test/debian\n");
	put("/etc/apt/apt.conf.d/1", "# Acquire::http::Proxy \"http://comment.test\";\n"
				     "Acquire { https { Proxy \"http://four.test:8080\"; }; "
				     "};\nAcquire::http::Proxy::x \"DIRECT\";\n");
	put("/etc/os-release", "ID=made-up\n");
#define ALL "[\"one.test\",\"two.test\",\"three.test\",\"proxy.test:3128\",\"four.test:8080\"]"
	surveyed("{\"sets\":{\"apt\":" ALL ",\"made-up\":" ALL "},\"more\":{}}");
	put("/etc/os-release", "ID=pypi\n"); /* not another set's name */
	surveyed("{\"sets\":{\"apt\":" ALL "},\"more\":{}}");
	put("/etc/apk/repositories", "https://apk.test/v3/main\n#https://comment.test/\n");
	surveyed("{\"sets\":{\"apt\":" ALL ",\"apk\":[\"apk.test\"]},\"more\":{}}");
}

static const char BASE[] = "{\"sets\":{\"pypi\":[\"m.test\"],\"mine\":[\"a.test\"],\"github\":[\"k.test\"]},"
			   "\"sources\":{\"pypi\":[\"machine\"],\"github\":[\"known\"]}}";

static void merged(const char *record, const struct json_strmap *env, const char *want)
{
	struct buf out = BUF_INIT(1u << 16);
	struct config_sets got;
	struct json *base;
	struct json_out o;
	struct err e = { 0 };

	assert_int_equal(json_parse(&arena, view_of(BASE), &base, &e), 0);
	const struct config_sets machine = { json_get(base, "sets"), json_get(base, "sources") };
	if (config_sets_merge(&arena, &machine, view_of(record), env, "image", &got, &e) < 0)
		fail_msg("%s", e.msg);
	json_out_init(&o, &out);
	json_out_value(&o, got.sets);
	json_out_init(&o, &out);
	json_out_value(&o, got.sources);
	if (!view_is(buf_view(&out), want))
		fail_msg("it is %.*s", VIEW_ARG(buf_view(&out)));
	buf_done(&out);
}

#define UNCHANGED "\"mine\":[\"a.test\"],\"github\":[\"k.test\"]"
#define SAME      "{\"pypi\":[\"m.test\"]," UNCHANGED "}{\"pypi\":[\"machine\"],\"github\":[\"known\"]}"

static void test_merge(void **state)
{
	struct view keys[] = { VIEW("PIP_INDEX_URL"), VIEW("PIP_EXTRA_INDEX_URL"), VIEW("OTHER") };
	struct view values[] = { VIEW("http://env.test/simple"), VIEW("http://one.test/ http://10.0.0.1/"),
				 VIEW("http://no.test/") };
	const struct json_strmap env = { keys, values, ELEMS(keys) };

	merged("", NULL, SAME);
	merged("{}", NULL, SAME);
	merged("{\"sets\":{\"pypi\":[\"i.test\"],\"new\":[\"n.test:80\"]}}", NULL,
	       "{\"pypi\":[\"i.test\"]," UNCHANGED ",\"new\":[\"n.test:80\"]}"
	       "{\"pypi\":[\"image\"],\"github\":[\"known\"],\"new\":[\"image\"]}");
	merged("{\"more\":{\"pypi\":[\"i.test\"]}}", NULL,
	       "{\"pypi\":[\"m.test\",\"i.test\"]," UNCHANGED
	       "}{\"pypi\":[\"machine\",\"image\"],\"github\":[\"known\"]}");
	merged("{\"sets\":{\"pypi\":[\"i.test\"]}}", &env,
	       "{\"pypi\":[\"i.test\",\"env.test\",\"one.test\"]," UNCHANGED
	       "}{\"pypi\":[\"image\"],\"github\":[\"known\"]}");
	/* The administrator's stay, well-known ones are not replaced. */
	merged("{\"sets\":{\"mine\":[\"i.test\"],\"github\":[\"i.test\"]},\"more\":{\"mine\":[\"i.test\"]}}",
	       NULL, SAME);
}

/* What no survey writes: the record is believed in nothing. */
static void test_hostile_records(void **state)
{
	struct config_sets got;
	struct err e = { 0 };

	merged("{\"sets\":{\"pypi\":[\"*\",\"*.test\",\"10.0.0.1\",\"0.0.0.0/0\",\"[::1]\",\"http://a.test/"
	       "\",\"mine\",7,null,[]]}}",
	       NULL, SAME);
	merged("{\"sets\":[],\"more\":7}", NULL, SAME);
	merged("{\"sets\":{\"Bad Name\":[\"i.test\"],\"pypi\":{}}}", NULL, SAME);
	assert_true(config_sets_merge(&arena, &(struct config_sets){ 0 }, VIEW("{"), NULL, "image", &got,
				      &e) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_bare, setup, teardown),
		cmocka_unit_test_setup_teardown(test_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_mirrors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_apt, setup, teardown),
		cmocka_unit_test_setup_teardown(test_git, setup, teardown),
		cmocka_unit_test_setup_teardown(test_given, setup, teardown),
		cmocka_unit_test_setup_teardown(test_survey, setup, teardown),
		cmocka_unit_test_setup_teardown(test_survey_apt, setup, teardown),
		cmocka_unit_test_setup_teardown(test_merge, setup, teardown),
		cmocka_unit_test_setup_teardown(test_hostile_records, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
