/*
 * Rules: order, names, addresses, ports, protocols, methods and paths; what is decided
 * with all facts, what may still be, and what needs no look at the bytes.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "policy.h"
#include "wire_gen.h"

#include "poison.h"

#define LIST(...)                                                                                            \
	{                                                                                                    \
		(struct view[]){ __VA_ARGS__ }, sizeof((struct view[]){ __VA_ARGS__ }) / sizeof(struct view) \
	}
#define PORTS(...)                                                                                           \
	{                                                                                                    \
		(struct wire_gate_ports[]){ __VA_ARGS__ },                                                   \
			sizeof((struct wire_gate_ports[]){ __VA_ARGS__ }) / sizeof(struct wire_gate_ports)   \
	}
#define ALLOW(...)                                                                                           \
	{                                                                                                    \
		.action = WIRE_GATE_ACTION_ALLOW, __VA_ARGS__                                                \
	}
#define DENY(...)                                                                                            \
	{                                                                                                    \
		.action = WIRE_GATE_ACTION_DENY, __VA_ARGS__                                                 \
	}
#define POLICY(...)                                                                                          \
	make((struct wire_gate_rule[]){ __VA_ARGS__ },                                                       \
	     sizeof((struct wire_gate_rule[]){ __VA_ARGS__ }) / sizeof(struct wire_gate_rule))

static struct policy *make(struct wire_gate_rule *rules, size_t n)
{
	struct wire_gate_policy m = { .rules = { rules, n } };
	struct policy *p = NULL;
	struct err e = { 0 };
	if (policy_new(&m, &p, &e) < 0)
		fail_msg("%s", e.msg);
	return p;
}

static bool refused(struct wire_gate_rule rule)
{
	struct wire_gate_policy m = { .rules = { &rule, 1 } };
	struct policy *p;
	struct err e = { 0 };
	if (policy_new(&m, &p, &e) == 0) {
		policy_free(p);
		return false;
	}
	assert_int_not_equal(e.code, ERR_OK);
	return true;
}

/* "name address port proto [method path]" */
static enum policy_answer ask(const struct policy *p, const char *name, const char *address, uint16_t port,
			      enum policy_proto proto, const char *method, const char *path)
{
	const struct policy_rule *rule;
	struct addr a;
	struct policy_facts f = { .name = view_of(name),
				  .port = port,
				  .proto = proto,
				  .method = view_of(method),
				  .path = view_of(path) };
	assert_int_equal(addr_parse(view_of(address), &a), 0);
	f.addr = &a;
	enum policy_answer answer = policy_decide(p, &f, &rule);
	assert_int_equal(rule != NULL, answer == POLICY_ALLOW || answer == POLICY_DENY_RULE);
	/* What is allowed with all facts must be possible with fewer. */
	if (answer == POLICY_ALLOW) {
		assert_true(policy_may(p, &f));
		f.proto = 0;
		assert_true(policy_may(p, &f));
		f.addr = NULL;
		if (rule->n_domains || !rule->n_cidrs)
			assert_true(policy_may(p, &f));
	}
	return answer;
}

static enum policy_answer tls(const struct policy *p, const char *name, const char *address)
{
	return ask(p, name, address, 443, POLICY_TLS, "", "");
}

static void nothing_is_denied_by_nobody(void **state)
{
	struct policy *p = POLICY(DENY());
	p->n = 0;
	assert_int_equal(tls(p, "a.test", "1.2.3.4"), POLICY_DENY);
	policy_free(p);
	assert_true(refused((struct wire_gate_rule){ .id = VIEW("zero") }));
}

static void names(void **state)
{
	struct policy *p = POLICY(ALLOW(.domains = LIST(VIEW("A.test"), VIEW("*.b.test"))));
	assert_int_equal(tls(p, "a.test", "1.2.3.4"), POLICY_ALLOW);
	assert_int_equal(tls(p, "x.a.test", "1.2.3.4"), POLICY_DENY);
	assert_int_equal(tls(p, "xa.test", "1.2.3.4"), POLICY_DENY);
	assert_int_equal(tls(p, "x.b.test", "1.2.3.4"), POLICY_ALLOW);
	assert_int_equal(tls(p, "x.y.b.test", "1.2.3.4"), POLICY_ALLOW);
	assert_int_equal(tls(p, "b.test", "1.2.3.4"), POLICY_DENY);
	assert_int_equal(tls(p, "xb.test", "1.2.3.4"), POLICY_DENY);
	assert_int_equal(tls(p, "a.test.evil", "1.2.3.4"), POLICY_DENY);
	assert_int_equal(tls(p, "", "1.2.3.4"), POLICY_DENY);
	policy_free(p);
	p = POLICY(ALLOW(.domains = LIST(VIEW("*"))));
	assert_int_equal(tls(p, "a.test", "1.2.3.4"), POLICY_ALLOW);
	assert_int_equal(tls(p, "", "1.2.3.4"), POLICY_DENY); /* every name, but a name */
	policy_free(p);
}

static void order(void **state)
{
	struct policy *p =
		POLICY(DENY(.domains = LIST(VIEW("x.b.test"))), ALLOW(.domains = LIST(VIEW("*.b.test"))));
	assert_int_equal(tls(p, "x.b.test", "1.2.3.4"), POLICY_DENY_RULE);
	assert_int_equal(tls(p, "y.b.test", "1.2.3.4"), POLICY_ALLOW);
	policy_free(p);
	p = POLICY(ALLOW(.domains = LIST(VIEW("*.b.test"))), DENY(.domains = LIST(VIEW("x.b.test"))));
	assert_int_equal(tls(p, "x.b.test", "1.2.3.4"), POLICY_ALLOW);
	policy_free(p);
}

static void inner_addresses(void **state)
{
	struct policy *p = POLICY(ALLOW(.domains = LIST(VIEW("*"))),
				  ALLOW(.cidrs = LIST(VIEW("0.0.0.0/0"), VIEW("::/0"))));
	static const char *const inner[] = { "10.0.0.1", "127.0.0.1",       "169.254.169.254", "::1",
					     "fd00::1",  "64:ff9b::7f00:1", "100.64.0.1" };
	for (size_t i = 0; i < ELEMS(inner); i++) {
		assert_int_equal(tls(p, "a.test", inner[i]), POLICY_DENY_ADDRESS);
		assert_int_equal(ask(p, "", inner[i], 80, POLICY_TCP, "", ""), POLICY_DENY_ADDRESS);
	}
	assert_int_equal(tls(p, "", "1.2.3.4"), POLICY_ALLOW);
	assert_int_equal(tls(p, "", "224.0.0.1"), POLICY_DENY_ADDRESS);
	policy_free(p);
	/* A range that lies within its kind names it; with a domain both must hold. */
	p = POLICY(ALLOW(.cidrs = LIST(VIEW("10.1.0.0/16"))),
		   ALLOW(.domains = LIST(VIEW("db.test")), .cidrs = LIST(VIEW("192.168.0.0/16"))),
		   ALLOW(.cidrs = LIST(VIEW("224.0.0.1"))), ALLOW(.cidrs = LIST(VIEW("8.0.0.0/6"))));
	assert_int_equal(ask(p, "", "10.1.2.3", 80, POLICY_TCP, "", ""), POLICY_ALLOW);
	assert_int_equal(ask(p, "", "10.2.2.3", 80, POLICY_TCP, "", ""),
			 POLICY_DENY_ADDRESS); /* 8/6 holds it, and does not name it */
	assert_int_equal(ask(p, "", "192.168.1.1", 80, POLICY_TCP, "", ""), POLICY_DENY);
	assert_int_equal(ask(p, "db.test", "192.168.1.1", 80, POLICY_TCP, "", ""), POLICY_ALLOW);
	assert_int_equal(ask(p, "db.test", "1.1.1.1", 80, POLICY_TCP, "", ""), POLICY_DENY);
	assert_int_equal(ask(p, "", "224.0.0.1", 80, POLICY_TCP, "", ""), POLICY_DENY_ADDRESS);
	policy_free(p);
}

static void own_addresses(void **state)
{
	struct policy *p = POLICY(ALLOW(.cidrs = LIST(VIEW("11.0.0.0/8"), VIEW("11.9.9.9"))),
				  ALLOW(.domains = LIST(VIEW("*"))));
	const struct policy_rule *rule;
	struct addr a;
	struct policy_facts f = {
		.name = VIEW("a.test"), .addr = &a, .own = true, .port = 80, .proto = POLICY_TCP
	};
	assert_int_equal(addr_parse(VIEW("11.1.1.1"), &a), 0);
	assert_int_equal(policy_decide(p, &f, &rule), POLICY_DENY_ADDRESS);
	assert_false(policy_may(p, &f));
	assert_int_equal(addr_parse(VIEW("11.9.9.9"), &a), 0);
	assert_int_equal(policy_decide(p, &f, &rule), POLICY_ALLOW);
	policy_free(p);
}

static void ports_and_protocols(void **state)
{
	struct policy *p =
		POLICY(ALLOW(.domains = LIST(VIEW("a.test")), .ports = PORTS({ 443, 0 }, { 8000, 8080 }),
			     .protocol = WIRE_GATE_PROTOCOL_TLS),
		       ALLOW(.domains = LIST(VIEW("ssh.test")), .ports = PORTS({ 22, 22 }),
			     .protocol = WIRE_GATE_PROTOCOL_TCP));
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 443, POLICY_TLS, "", ""), POLICY_ALLOW);
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 8040, POLICY_TLS, "", ""), POLICY_ALLOW);
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 8081, POLICY_TLS, "", ""), POLICY_DENY);
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 443, POLICY_TCP, "", ""), POLICY_DENY);
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 443, POLICY_HTTP, "GET", "/"), POLICY_DENY);
	assert_int_equal(ask(p, "ssh.test", "1.2.3.4", 22, POLICY_TCP, "", ""), POLICY_ALLOW);
	policy_free(p);
	assert_true(refused((struct wire_gate_rule)ALLOW(.ports = PORTS({ 0, 0 }))));
	assert_true(refused((struct wire_gate_rule)ALLOW(.ports = PORTS({ 5, 4 }))));
	assert_true(refused((struct wire_gate_rule)ALLOW(.ports = PORTS({ 1, 65536 }))));
	assert_true(refused((struct wire_gate_rule)ALLOW(.protocol = 4)));
}

static void requests(void **state)
{
	struct policy *p =
		POLICY(DENY(.domains = LIST(VIEW("a.test")), .paths = LIST(VIEW("/api/admin"))),
		       ALLOW(.domains = LIST(VIEW("a.test")), .methods = LIST(VIEW("GET"), VIEW("HEAD")),
			     .paths = LIST(VIEW("/api"), VIEW("/pub/"))));
	static const struct {
		const char *method, *path;
		enum policy_answer want;
	} cases[] = {
		{ "GET", "/api", POLICY_ALLOW },
		{ "HEAD", "/api/x", POLICY_ALLOW },
		{ "GET", "/pub/x", POLICY_ALLOW },
		{ "POST", "/api", POLICY_DENY },
		{ "GET", "/apix", POLICY_DENY },
		{ "GET", "/pub", POLICY_DENY },
		{ "GET", "/api/admin", POLICY_DENY_RULE },
		{ "GET", "/api/admin/x", POLICY_DENY_RULE },
		{ "GET", "/api/administer", POLICY_ALLOW },
		/* What two servers may read in two ways is allowed by no prefix, and denied by each. */
		{ "GET", "/api/../x", POLICY_DENY_RULE },
		{ "GET", "/api/%2e%2e/x", POLICY_DENY_RULE },
		{ "GET", "/api//x", POLICY_DENY_RULE },
		{ "GET", "/api%2fx", POLICY_DENY_RULE },
		{ "GET", "/api/x%5cy", POLICY_DENY_RULE },
		{ "GET", "/api/%252e", POLICY_DENY_RULE },
		{ "get", "/api", POLICY_DENY },
		{ "GET", "/api/..", POLICY_DENY_RULE },
		{ "GET", "/api/.x", POLICY_ALLOW },
		/* Other spellings of what is denied are denied, too; of what is allowed they are not allowed.
		 */
		{ "GET", "/api/%61dmin", POLICY_DENY_RULE },
		{ "GET", "/%61pi/ADMIN/x", POLICY_DENY_RULE },
		{ "GET", "/api/a%44min", POLICY_DENY_RULE },
		{ "GET", "/api/x%00", POLICY_DENY_RULE },
		{ "GET", "/%61pi", POLICY_DENY },
		{ "GET", "/api/%61", POLICY_ALLOW },
		{ "GET", "/api/admi%6E%31", POLICY_ALLOW },
	};
	for (size_t i = 0; i < ELEMS(cases); i++)
		if (ask(p, "a.test", "1.2.3.4", 80, POLICY_HTTP, cases[i].method, cases[i].path) !=
		    cases[i].want)
			fail_msg("%s %s", cases[i].method, cases[i].path);
	/* TLS that is not opened: nobody knows the method. */
	assert_int_equal(tls(p, "a.test", "1.2.3.4"), POLICY_DENY_RULE);
	policy_free(p);
	p = POLICY(ALLOW(.domains = LIST(VIEW("a.test")), .methods = LIST(VIEW("GET"))));
	assert_int_equal(tls(p, "a.test", "1.2.3.4"), POLICY_DENY);
	policy_free(p);
	assert_true(refused((struct wire_gate_rule)ALLOW(.methods = LIST(VIEW("GET")),
							 .protocol = WIRE_GATE_PROTOCOL_TCP)));
	assert_true(refused((struct wire_gate_rule)ALLOW(.paths = LIST(VIEW("api")))));
	assert_true(refused((struct wire_gate_rule)ALLOW(.paths = LIST(VIEW("/a/../b")))));
}

/* A rule that denies by what is inside denies what nobody sees the inside of. */
static void denied_inside(void **state)
{
	struct policy *p = POLICY(DENY(.domains = LIST(VIEW("a.test")), .methods = LIST(VIEW("DELETE"))),
				  ALLOW(.domains = LIST(VIEW("*"))));
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 80, POLICY_HTTP, "GET", "/"), POLICY_ALLOW);
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 80, POLICY_HTTP, "DELETE", "/"), POLICY_DENY_RULE);
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 80, POLICY_HTTP, "delete", "/"), POLICY_DENY_RULE);
	assert_int_equal(tls(p, "a.test", "1.2.3.4"), POLICY_DENY_RULE);
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 80, POLICY_TCP, "", ""), POLICY_DENY_RULE);
	assert_int_equal(tls(p, "b.test", "1.2.3.4"), POLICY_ALLOW);
	policy_free(p);
	/* One that says that it is about HTTP in clear says nothing about the rest. */
	p = POLICY(DENY(.protocol = WIRE_GATE_PROTOCOL_HTTP, .paths = LIST(VIEW("/admin"))),
		   ALLOW(.domains = LIST(VIEW("*"))));
	assert_int_equal(tls(p, "a.test", "1.2.3.4"), POLICY_ALLOW);
	policy_free(p);
}

static bool dns(const struct policy *p, const char *name)
{
	struct policy_facts f = { .name = view_of(name) };
	return policy_may(p, &f);
}

static void questions(void **state)
{
	struct policy *p = POLICY(DENY(.domains = LIST(VIEW("no.b.test"))),
				  DENY(.domains = LIST(VIEW("half.b.test")), .ports = PORTS({ 80, 80 })),
				  ALLOW(.domains = LIST(VIEW("*.b.test")), .ports = PORTS({ 443, 443 })),
				  ALLOW(.cidrs = LIST(VIEW("0.0.0.0/0"))));
	assert_true(dns(p, "x.b.test"));
	assert_true(dns(p, "half.b.test"));
	assert_false(dns(p, "no.b.test"));
	assert_false(dns(p, "evil.test")); /* a rule of addresses opens no name */
	policy_free(p);
	p = POLICY(ALLOW());
	assert_true(dns(p, "anything.test"));
	policy_free(p);
}

static int opaque(const struct policy *p, const char *name, const char *address, uint16_t port)
{
	const struct policy_rule *rule;
	enum policy_answer answer;
	struct addr a;
	struct policy_facts f = { .name = view_of(name), .addr = &a, .port = port };
	assert_int_equal(addr_parse(view_of(address), &a), 0);
	return policy_opaque(p, &f, &answer, &rule) ? (int)answer : -1;
}

static void without_a_look(void **state)
{
	struct policy *p = POLICY(ALLOW(.domains = LIST(VIEW("a.test")), .ports = PORTS({ 443, 443 })),
				  ALLOW(.domains = LIST(VIEW("ssh.test")), .ports = PORTS({ 22, 22 }),
					.protocol = WIRE_GATE_PROTOCOL_TCP),
				  ALLOW(.cidrs = LIST(VIEW("9.9.9.0/24"))));
	assert_int_equal(opaque(p, "", "1.2.3.4", 443), -1);
	assert_int_equal(opaque(p, "", "1.2.3.4", 25), POLICY_DENY);
	assert_int_equal(opaque(p, "", "9.9.9.9", 25), POLICY_ALLOW);
	assert_int_equal(opaque(p, "", "9.9.9.9", 443), -1); /* the name comes first */
	assert_int_equal(opaque(p, "ssh.test", "1.2.3.4", 22), POLICY_ALLOW);
	assert_int_equal(opaque(p, "x.test", "1.2.3.4", 22), POLICY_DENY);
	policy_free(p);
	/* A rule that must see the bytes to deny is not passed by. */
	p = POLICY(DENY(.domains = LIST(VIEW("evil.test")), .protocol = WIRE_GATE_PROTOCOL_TLS), ALLOW());
	assert_int_equal(opaque(p, "", "1.2.3.4", 443), -1);
	policy_free(p);
	p = POLICY(ALLOW());
	assert_int_equal(opaque(p, "", "1.2.3.4", 443), POLICY_ALLOW);
	assert_int_equal(opaque(p, "", "10.0.0.1", 443), POLICY_DENY_ADDRESS);
	policy_free(p);
}

static void spelling_of_names(void **state)
{
	static const char *const bad[] = {
		"",     ".",       "a..b",          ".a",     "-a.b",   "a-.b",       "a b",
		"a\nb", "1.2.3.4", "127.1",         "0x7f.1", "a.0x7f", "2130706433", "x.1",
		"a/b",  "a:b",     "\xc3\xa4.test", "a%00.b", "*.a"
	};
	char name[256], big[300];
	for (size_t i = 0; i < ELEMS(bad); i++)
		if (policy_name(view_of(bad[i]), name) == 0)
			fail_msg("%s", bad[i]);
	assert_true(policy_name((struct view){ "allowed.test\0.evil", 18 }, name) < 0);
	memset(big, 'a', sizeof(big));
	assert_true(policy_name((struct view){ big, 64 }, name) < 0);
	assert_int_equal(policy_name(VIEW("ExAmple.ORG."), name), 0);
	assert_string_equal(name, "example.org");
	assert_int_equal(policy_name(VIEW("_dmarc.x1.1a"), name), 0);
	assert_true(refused((struct wire_gate_rule)ALLOW(.domains = LIST(VIEW("a.*.b")))));
	assert_true(refused((struct wire_gate_rule)ALLOW(.domains = LIST(VIEW("10.0.0.1")))));
	assert_true(refused((struct wire_gate_rule)ALLOW(.cidrs = LIST(VIEW("10.0.0.1/8")))));
}

static bool opens(const struct policy *p, const char *name, const char *address)
{
	struct addr a;
	struct policy_facts f = { .name = view_of(name), .addr = &a, .port = 443, .proto = POLICY_TLS };
	assert_int_equal(addr_parse(view_of(address), &a), 0);
	return policy_opens_ech(p, &f);
}

static void encrypted_hellos(void **state)
{
	/* by name: looked into, whether the name is allowed is another question */
	struct policy *p =
		POLICY(ALLOW(.domains = LIST(VIEW("a.test"))), ALLOW(.cidrs = LIST(VIEW("9.0.0.0/8"))));
	assert_true(opens(p, "a.test", "1.2.3.4"));
	assert_true(opens(p, "b.test", "1.2.3.4"));
	assert_false(opens(p, "", "1.2.3.4"));       /* there is nothing to look into it by */
	assert_false(opens(p, "a.test", "9.2.3.4")); /* whatever it is for, it may */
	p->refuse_ech = true;
	assert_false(opens(p, "a.test", "1.2.3.4"));
	policy_free(p);
	/* every name, but a name */
	p = POLICY(ALLOW(.domains = LIST(VIEW("*"))));
	assert_true(opens(p, "a.test", "1.2.3.4"));
	policy_free(p);
	/* everything */
	p = POLICY(ALLOW());
	assert_false(opens(p, "a.test", "1.2.3.4"));
	assert_true(opens(p, "a.test", "10.2.3.4")); /* which a private address is not */
	policy_free(p);
	/* everything but a name, which could be the hidden one */
	p = POLICY(DENY(.domains = LIST(VIEW("b.test"))), ALLOW());
	assert_true(opens(p, "a.test", "1.2.3.4"));
	policy_free(p);
	p = POLICY(DENY(.domains = LIST(VIEW("b.test")), .ports = PORTS({ 80, 80 })),
		   DENY(.cidrs = LIST(VIEW("8.0.0.0/8"))), ALLOW());
	assert_false(opens(p, "a.test", "1.2.3.4"));
	assert_true(opens(p, "a.test", "8.2.3.4"));
	policy_free(p);
	p = POLICY(DENY(.paths = LIST(VIEW("/x"))), ALLOW());
	assert_true(opens(p, "a.test", "1.2.3.4"));
	policy_free(p);
	/* what is put into requests is put in */
	struct wire_gate_inject key = { .secret = VIEW("KEY"), .header = VIEW("x-key") };
	p = POLICY(ALLOW(.domains = LIST(VIEW("a.test")), .inject = { &key, 1 }), ALLOW());
	assert_true(opens(p, "a.test", "1.2.3.4"));
	assert_false(opens(p, "b.test", "1.2.3.4"));
	policy_free(p);
}

static bool looked_into(const struct policy *p, const char *name)
{
	struct addr a;
	struct policy_facts f = { .name = view_of(name), .addr = &a, .port = 443, .proto = POLICY_TLS };
	assert_int_equal(addr_parse(VIEW("1.2.3.4"), &a), 0);
	bool into = policy_intercepts(p, &f);
	assert_true(!into || policy_may(p, &f));
	return into;
}

/* Methods and paths of TLS are seen by looking into it; unless the rule is about HTTP in clear, or another
 * decided before. */
static void methods_within_tls(void **state)
{
	struct policy *p = POLICY(ALLOW(.domains = LIST(VIEW("a.test")), .methods = LIST(VIEW("GET"))),
				  ALLOW(.domains = LIST(VIEW("b.test")), .paths = LIST(VIEW("/x")),
					.protocol = WIRE_GATE_PROTOCOL_TLS),
				  ALLOW(.domains = LIST(VIEW("c.test")), .paths = LIST(VIEW("/x")),
					.protocol = WIRE_GATE_PROTOCOL_HTTP),
				  ALLOW(.domains = LIST(VIEW("d.test"))),
				  DENY(.domains = LIST(VIEW("d.test")), .paths = LIST(VIEW("/x"))),
				  DENY(.domains = LIST(VIEW("e.test")), .paths = LIST(VIEW("/x"))),
				  ALLOW(.domains = LIST(VIEW("e.test"))));
	assert_true(looked_into(p, "a.test"));
	assert_true(looked_into(p, "b.test"));
	assert_false(looked_into(p, "c.test"));
	assert_false(looked_into(p, "d.test"));
	assert_true(looked_into(p, "e.test"));
	assert_false(looked_into(p, "f.test"));
	assert_false(looked_into(p, "")); /* nothing to make a certificate for */
	policy_free(p);
	p = POLICY(ALLOW(.cidrs = LIST(VIEW("1.0.0.0/8")), .methods = LIST(VIEW("GET"))));
	assert_true(looked_into(p, "a.test"));
	policy_free(p);
}

static enum policy_answer opened(const struct policy *p, const char *name, const char *method,
				 const char *path)
{
	const struct policy_rule *rule;
	struct addr a;
	struct policy_facts f = { .name = view_of(name),
				  .addr = &a,
				  .port = 443,
				  .proto = POLICY_HTTP,
				  .method = view_of(method),
				  .path = view_of(path),
				  .opened = true };
	assert_int_equal(addr_parse(VIEW("1.2.3.4"), &a), 0);
	return policy_decide(p, &f, &rule);
}

/* A request of a connection that was opened for its hello: what allowed the connection allows it, too. */
static void requests_within_tls(void **state)
{
	struct policy *p = POLICY(DENY(.domains = LIST(VIEW("a.test")), .methods = LIST(VIEW("POST"))),
				  ALLOW(.domains = LIST(VIEW("a.test")), .protocol = WIRE_GATE_PROTOCOL_TLS));
	assert_int_equal(opened(p, "a.test", "GET", "/"), POLICY_ALLOW);
	assert_int_equal(opened(p, "a.test", "POST", "/"), POLICY_DENY_RULE);
	assert_int_equal(opened(p, "b.test", "GET", "/"), POLICY_DENY);
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 80, POLICY_HTTP, "GET", "/"), POLICY_DENY);
	policy_free(p);
	p = POLICY(ALLOW(.domains = LIST(VIEW("a.test")), .paths = LIST(VIEW("/x")),
			 .protocol = WIRE_GATE_PROTOCOL_TLS));
	assert_int_equal(opened(p, "a.test", "GET", "/x/y"), POLICY_ALLOW);
	assert_int_equal(opened(p, "a.test", "GET", "/y"), POLICY_DENY);
	assert_int_equal(ask(p, "a.test", "1.2.3.4", 80, POLICY_HTTP, "GET", "/x"),
			 POLICY_DENY); /* in clear */
	policy_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_denied_by_nobody),
		cmocka_unit_test(names),
		cmocka_unit_test(order),
		cmocka_unit_test(inner_addresses),
		cmocka_unit_test(own_addresses),
		cmocka_unit_test(ports_and_protocols),
		cmocka_unit_test(requests),
		cmocka_unit_test(denied_inside),
		cmocka_unit_test(questions),
		cmocka_unit_test(without_a_look),
		cmocka_unit_test(spelling_of_names),
		cmocka_unit_test(encrypted_hellos),
		cmocka_unit_test(requests_within_tls),
		cmocka_unit_test(methods_within_tls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
