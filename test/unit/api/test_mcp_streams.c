/*
 * Sessions and streams of MCP on a real server, with the fixtures of the conformance suite: clients that go
 * away at every point, come again, cancel, answer, and leave everything open at the end. The sanitizers
 * watch.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fd.h"
#include "mcp_impl.h"
#include "serve_rig.h"
#include "text.h"
#include "poison.h"

#define MODERN "2026-07-28"
#define CAPS   "{\"elicitation\":{},\"sampling\":{},\"roots\":{}}"
#define META                                                                                                 \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"" MODERN                                   \
	"\",\"io.modelcontextprotocol/clientCapabilities\":" CAPS ",\"progressToken\":7}"

static struct serve_rig rig;
static char session[64]; /* a header line */

static int start(void **state)
{
	static const struct dialect *const dialects[] = { &mcp_conformance_dialect, NULL };
	serve_rig_start(&rig, dialects, "mcp-conformance");
	return 0;
}

static int stop(void **state)
{
	serve_rig_stop(&rig);
	return 0;
}

/* ---- a client ---- */

static int send_request(const char *method, const char *headers, const char *body)
{
	int fd = http_rig_connect(&rig.listeners[1]);
	struct buf b = BUF_INIT(1u << 20);

	buf_printf(&b,
		   "%s /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: "
		   "application/json, text/event-stream\r\nContent-Length: %zu\r\n%s\r\n%s",
		   method, strlen(body), headers, body);
	http_rig_send_bytes(fd, buf_view(&b).p, buf_len(&b));
	buf_done(&b);
	return fd;
}

/* The whole answer; returns its status. */
static int finish(int fd, struct buf *body)
{
	struct buf head = BUF_INIT(1u << 16);
	int status = http_rig_read_answer(fd, &head, body, false);

	if (!session[0]) {
		const char *at = memmem(buf_view(&head).p, buf_len(&head), "mcp-session-id: ", 16);
		if (at)
			snprintf(session, sizeof(session), "Mcp-Session-Id: %.32s\r\n", at + 16);
	}
	buf_done(&head);
	close(fd);
	return status;
}

static int ask(const char *method, const char *headers, const char *body, const char *want)
{
	struct buf b = BUF_INIT(1u << 20);
	int status = finish(send_request(method, headers, body), &b);

	if (want && (!buf_len(&b) || !memmem(buf_view(&b).p, buf_len(&b), want, strlen(want))))
		fail_msg("no %s in %.*s", want, (int)buf_len(&b), buf_view(&b).p);
	buf_done(&b);
	return status;
}

/* Bytes until this text is there; the connection stays open. */
static void read_until(int fd, struct buf *in, const char *want)
{
	char piece[4096];

	while (!buf_len(in) || !memmem(buf_view(in).p, buf_len(in), want, strlen(want))) {
		struct pollfd p = { fd, POLLIN, 0 };
		assert_int_equal(poll(&p, 1, 10000), 1);
		ssize_t n = recv(fd, piece, sizeof(piece), 0);
		if (n <= 0)
			fail_msg("no %s in %.*s", want, (int)buf_len(in), buf_view(in).p);
		buf_append(in, piece, (size_t)n);
	}
}

static void begin(const char *version)
{
	char body[512];

	session[0] = 0;
	snprintf(body, sizeof(body),
		 "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"%"
		 "s\","
		 "\"capabilities\":" CAPS "}}",
		 version);
	assert_int_equal(ask("POST", "", body, version), 200);
	assert_true(session[0]);
}

static const char *call(const char *tool)
{
	static char body[512];
	snprintf(body, sizeof(body),
		 "{\"jsonrpc\":\"2.0\",\"id\":\"c\",\"method\":\"tools/call\",\"params\":{\"name\":\"%s\","
		 "\"arguments\":{\"message\":\"m\",\"prompt\":\"p\"},\"_meta\":{\"progressToken\":7}}}",
		 tool);
	return body;
}

static int send_modern(const char *tool)
{
	char body[1024], headers[256];
	snprintf(body, sizeof(body),
		 "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"%s\"," META
		 "}}",
		 tool);
	snprintf(headers, sizeof(headers),
		 "MCP-Protocol-Version: " MODERN "\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\n", tool);
	return send_request("POST", headers, body);
}

/* ---- tests ---- */

static void test_going_away(void **state)
{
	static const char *const tools[] = { "test_tool_with_progress", "test_tool_with_logging",
					     "test_elicitation", "test_reconnection", "test_simple_text" };

	begin("2025-11-25");
	for (size_t i = 0; i < ELEMS(tools); i++) {
		struct buf in = BUF_INIT(1u << 20);
		close(send_request("POST", session, call(tools[i])));   /* at once */
		int fd = send_request("POST", session, call(tools[i])); /* with the first bytes */
		read_until(fd, &in, "\r\n\r\n");
		close(fd);
		buf_done(&in);
		in = BUF_INIT(1u << 20);
		fd = send_modern(tools[i]);
		read_until(fd, &in, "HTTP/1.1");
		close(fd);
		buf_done(&in);
		close(send_modern(tools[i]));
	}
	assert_int_equal(
		ask("POST", session, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}", "\"result\":{}"),
		200);
	assert_int_equal(ask("DELETE", session, "", NULL), 204);
	assert_int_equal(ask("POST", session, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}", NULL),
			 404);
}

static void test_coming_again(void **state)
{
	struct buf in = BUF_INIT(1u << 20);
	char headers[256], id[32];

	begin("2025-11-25");
	int fd = send_request("POST", session, call("test_tool_with_progress"));
	read_until(fd, &in, "\"progress\":0");
	close(fd);
	const char *at = memmem(buf_view(&in).p, buf_len(&in), "\nid: ", 5);
	snprintf(id, sizeof(id), "%.*s", (int)strcspn(at + 5, "\r\n"), at + 5);
	snprintf(headers, sizeof(headers), "%sLast-Event-ID: %s\r\n", session, id);
	for (int i = 0; i < 3; i++) /* the second and third after its end */
		assert_int_equal(ask("GET", headers, "", "\"done\""), 200);
	/* Two at the same time: the newer one has it. */
	buf_clear(&in);
	fd = send_request("POST", session, call("test_elicitation"));
	read_until(fd, &in, "elicitation/create");
	at = memmem(buf_view(&in).p, buf_len(&in), "\nid: ", 5);
	snprintf(id, sizeof(id), "%.*s", (int)strcspn(at + 5, "\r\n"), at + 5);
	snprintf(headers, sizeof(headers), "%sLast-Event-ID: %s\r\n", session, id);
	int again = send_request("GET", headers, "");
	buf_clear(&in);
	read_until(again, &in, "elicitation/create");
	at = memmem(buf_view(&in).p, buf_len(&in), "paddock-", 8);
	char answer[256];
	snprintf(answer, sizeof(answer),
		 "{\"jsonrpc\":\"2.0\",\"id\":\"%.*s\",\"result\":{\"action\":\"accept\",\"content\":{"
		 "\"username\":\"u\"}}}",
		 (int)strcspn(at, "\""), at);
	assert_int_equal(ask("POST", session, answer, NULL), 202);
	read_until(again, &in, "action=accept");
	assert_int_equal(ask("POST", session, answer, NULL), 202); /* once more: nobody waits for it */
	close(again);
	close(fd);
	snprintf(headers, sizeof(headers), "%sLast-Event-ID: 77-1\r\n", session);
	assert_int_equal(ask("GET", headers, "", NULL), 400);
	assert_int_equal(ask("DELETE", session, "", NULL), 204);
	buf_done(&in);
}

static void test_cancelling(void **state)
{
	struct buf in = BUF_INIT(1u << 20);

	begin("2025-11-25");
	int fd = send_request("POST", session, call("test_elicitation"));
	read_until(fd, &in, "elicitation/create");
	assert_int_equal(ask("POST", session,
			     "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/"
			     "cancelled\",\"params\":{\"requestId\":\"c\"}}",
			     NULL),
			 202);
	read_until(fd, &in, "\r\n0\r\n");
	close(fd);
	/* A session that ends with calls under way, one of them unread. */
	buf_clear(&in);
	fd = send_request("POST", session, call("test_sampling"));
	read_until(fd, &in, "sampling/createMessage");
	close(send_request("POST", session, call("test_sampling")));
	int waiting = send_request("GET", session, "");
	buf_clear(&in);
	read_until(waiting, &in, "retry: ");
	assert_int_equal(ask("DELETE", session, "", NULL), 204);
	read_until(waiting, &in, "\r\n0\r\n");
	close(waiting);
	close(fd);
	buf_done(&in);
}

static void test_batches(void **state)
{
	char body[2048];

	begin("2025-03-26");
	snprintf(body, sizeof(body), "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},%s,%s]",
		 call("test_simple_text"), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}");
	assert_int_equal(ask("POST", session, body, "simple text"), 200);
	/* An answer that is there, and one whose call says something first. */
	snprintf(body, sizeof(body), "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"},%s]",
		 call("test_tool_with_progress"));
	assert_int_equal(ask("POST", session, body, "\"done\""), 200);
	close(send_request("POST", session, body));
	assert_int_equal(ask("DELETE", session, "", NULL), 204);
}

static void test_subscriptions(void **state)
{
	struct buf in = BUF_INIT(1u << 20);
	static const char body[] =
		"{\"jsonrpc\":\"2.0\",\"id\":\"s\",\"method\":\"subscriptions/listen\",\"params\":{"
		"\"notifications\":{\"toolsListChanged\":true}," META "}}";

	int fd = send_request(
		"POST", "MCP-Protocol-Version: " MODERN "\r\nMcp-Method: subscriptions/listen\r\n", body);
	read_until(fd, &in, "subscriptions/acknowledged");
	int other = send_modern("test_trigger_tool_change");
	read_until(fd, &in, "tools/list_changed");
	close(other);
	close(fd);
	other = send_modern("test_trigger_tool_change"); /* nobody listens any more */
	read_until(other, &in, "\"done\"");
	close(other);
	buf_done(&in);
}

/* A call that nobody reads and a stream that waits: the end of the server takes them. */
static void test_leaving_all_open(void **state)
{
	struct buf in = BUF_INIT(1u << 20);

	begin("2025-11-25");
	int a = send_request("POST", session, call("test_elicitation"));
	read_until(a, &in, "elicitation/create");
	int b = send_request("GET", session, "");
	buf_clear(&in);
	read_until(b, &in, "retry: ");
	close(a);
	serve_rig_stop(&rig);
	assert_int_equal(start(state), 0);
	close(b);
	buf_done(&in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_going_away),    cmocka_unit_test(test_coming_again),
		cmocka_unit_test(test_cancelling),    cmocka_unit_test(test_batches),
		cmocka_unit_test(test_subscriptions), cmocka_unit_test(test_leaving_all_open),
	};
	return cmocka_run_group_tests(tests, start, stop);
}
