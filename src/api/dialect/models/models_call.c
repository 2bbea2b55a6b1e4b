/*
 * One call to a model: gets a ticket from the vault and a stream from paddock-ai, which has the key;
 * passes the answer to the client as it arrives; and charges the price to the budgets however the call
 * ends. See models.h.
 *
 * paddock-ai limits the time for connecting; this file limits the time to the first byte and the time
 * of silence.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "fd.h"
#include "log.h"
#include "models_impl.h"
#include "money.h"
#include "redact.h"
#include "secret.h"
#include "text.h"
#include "poison.h"

#define FIRST_MS   120000
#define SILENCE_MS 300000
#define HEAD_MAX   (64u * 1024)
#define OUT_MAX    (40u * 1024 * 1024)
#define PIECE      (64u * 1024)
#define PASS_MAX   (4u * 1024 * 1024)
#define TEXT_MAX   (16u * 1024) /* that is kept of each body */

/* ---- the text, where it is kept ---- */

static void keep(struct buf *to, struct view text, bool *cut)
{
	size_t n = MIN(text.n, buf_room(to));

	buf_append(to, text.p, n);
	*cut |= n < text.n;
}

/* What looks like a secret is left out before anybody keeps it. */
static struct view readable(const struct buf *text, bool *cut, struct buf *out)
{
	if (redact(buf_view(text), *cut, out) < 0)
		return VIEW("");
	struct view v = buf_view(out), kept = view_head(v, MIN(v.n, TEXT_MAX));
	if (*cut || kept.n < v.n)
		kept.n = text_utf8_prefix(kept);
	*cut |= kept.n < v.n;
	return kept;
}

/* ---- the end ---- */

static int64_t cost_of(const struct models_call *k, const struct meter_usage *u)
{
	return k->price ? prices_cost(k->price, u) : 0;
}

/* An answer that says why it refused has used nothing; one that broke off has. */
static void settle(struct models_call *k)
{
	struct usage_end end = { .status = k->status, .finish = k->finish ? k->finish : "broken" };
	struct meter_usage *u = &end.used;

	if (!k->reserved)
		return;
	k->reserved = false;
	if (!k->sent) {
		usage_give_back(k->home->core, &k->usage);
		return;
	}
	bool refused = k->status >= 300;
	if (!k->ep->free && !(refused && !(k->metered && k->meter.known))) {
		if (!k->metered)
			meter_init(&k->meter, k->ep->api, false, false);
		end.estimated = meter_result(&k->meter, k->ask.input_tokens, u);
		k->metered = true;
	}
	end.cost = k->ep->free || refused ? 0 : cost_of(k, u);
	_cleanup_(buf_done) struct buf said = { .max = REDACT_GROWTH * TEXT_MAX, .secret = true },
				       heard = said;
	if (k->keeps) {
		end.bodies.kept = true;
		end.bodies.request = readable(&k->said, &k->said_cut, &said);
		end.bodies.response = readable(&k->heard, &k->heard_cut, &heard);
		end.bodies.request_cut = k->said_cut;
		end.bodies.response_cut = k->heard_cut;
	}
	usage_settle(k->home->core, &k->usage, &end);
	_cleanup_(buf_done) struct buf model = BUF_INIT(1024);
	text_quote(&model, view_of(k->usage.model), 128);
	log_info("ai: box %s, %s %s, model %.*s: %d, %llu + %llu tokens%s, $%.6f, %llu ms", k->box,
		 k->usage.provider, k->ep->name, VIEW_ARG(buf_view(&model)), k->status,
		 (unsigned long long)(u->input + u->cache_read + u->cache_write),
		 (unsigned long long)u->output, end.estimated ? " (estimated)" : "", (double)end.cost / 1e9,
		 (unsigned long long)(loop_now(k->loop) - k->began_ms));
}

static void hang_up(struct models_call *k)
{
	if (k->io.fd >= 0)
		loop_io_stop(&k->io);
	k->io.fd = -1;
	fd_close(k->fd);
	k->fd = -1;
}

void models_call_release(struct request *r)
{
	struct models_call *k = r->own;

	job_abandon(k->key);
	if (k->dial.call.ops)
		carrier_cancel(&k->dial);
	loop_timer_stop(&k->timer);
	hang_up(k);
	settle(k);
	if (k->metered)
		meter_done(&k->meter);
	list_del(&k->link);
	buf_done(&k->body);
	buf_done(&k->out);
	buf_done(&k->said);
	buf_done(&k->heard);
	if (k->in)
		explicit_bzero(k->in, k->n_in); /* a provider may quote a part of the key */
	free(k->in);
}

void models_call_refuse(struct models_call *k, int status, const char *code, const char *message,
			unsigned retry)
{
	struct http_exchange *x = k->x;
	struct buf body = BUF_INIT(8192);
	char seconds[16];
	struct http_header extra;

	if (k->answered) {
		http_break(x);
		request_done(k->r);
		return;
	}
	snprintf(seconds, sizeof(seconds), "%u", retry);
	extra = retry ? (struct http_header){ VIEW("retry-after"), view_of(seconds) }
		      : (struct http_header){ VIEW("x-should-retry"), VIEW("false") };
	models_head_error(&body, k->style, status, code, message);
	http_reply(x, status, "application/json", buf_view(&body), &extra, 1);
	buf_done(&body);
	request_done(k->r);
}

void models_call_fail(struct models_call *k, const struct err *e)
{
	int status = err_http(e->code);
	models_call_refuse(k, status, err_name(e->code), e->msg, status >= 500 ? 1 : 0);
}

void models_call_gone(struct request *r)
{
	struct models_call *k = r->own;
	k->finish = "client";
}

static void bad_answer(struct models_call *k, const char *why)
{
	models_call_refuse(k, 502, "bad_gateway", why, 1);
}

static void on_time(struct loop_timer *t)
{
	struct models_call *k = CONTAINER(t, struct models_call, timer);
	k->finish = "timeout";
	models_call_refuse(k, 504, "timeout", "the provider does not answer in time", 1);
}

/* ---- the answer ---- */

static void finish(struct models_call *k)
{
	struct http_exchange *x = k->x;
	struct buf rest = BUF_INIT(PASS_MAX);

	if (k->metered)
		meter_end(&k->meter, &rest);
	if (buf_len(&rest))
		(void)http_write(x, buf_view(&rest));
	if (k->keeps)
		keep(&k->heard, buf_view(&rest), &k->heard_cut);
	buf_done(&rest);
	k->finish = k->status >= 300 ? "error" : "complete";
	http_end(x);
	request_done(k->r);
}

/* A call that takes more than was reserved for it is cut off, where there is a budget. */
static bool is_overdrawn(const struct models_call *k)
{
	struct meter_usage u;

	if (!k->price || !k->usage.bounded || k->meter.known)
		return false;
	(void)meter_result(&k->meter, k->ask.input_tokens, &u);
	return cost_of(k, &u) > 2 * k->usage.claim.cost; /* a token is four bytes only about */
}

/* False: the call is over. */
static bool pass(struct models_call *k, struct view data)
{
	struct buf out = BUF_INIT(PASS_MAX);

	if (k->metered)
		meter_feed(&k->meter, data, &out);
	struct view all = k->metered ? buf_view(&out) : data;
	bool bad = out.bad;
	if (k->keeps)
		keep(&k->heard, all, &k->heard_cut);
	if (all.n && !http_write(k->x, all))
		k->full = true;
	buf_done(&out);
	bool overdrawn = !bad && k->metered && is_overdrawn(k);
	if (bad || overdrawn) {
		k->finish = overdrawn ? "budget" : NULL;
		bad_answer(k, "");
		return false;
	}
	return true;
}

static bool take_body(struct models_call *k, struct view data)
{
	struct view piece;
	int r;

	if (k->framing == HTTP1_TO_END)
		return data.n == 0 || pass(k, data);
	while ((r = http1_body_next(&k->unpack, &data, &piece)) == HTTP1_DATA)
		if (!pass(k, piece))
			return false;
	if (r == HTTP1_MORE)
		return true;
	if (r == HTTP1_END)
		finish(k);
	else
		bad_answer(k, "");
	return false;
}

static bool is_stream(const struct http1_response *r)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (view_is(r->headers[i].name, "content-type") &&
		    view_starts(r->headers[i].value, "text/event-stream"))
			return true;
	return false;
}

static bool is_packed(const struct http1_response *r)
{
	for (size_t i = 0; i < r->n_headers; i++)
		if (view_is(r->headers[i].name, "content-encoding") &&
		    !view_eq_nocase(r->headers[i].value, VIEW("identity")))
			return true;
	return false;
}

static bool begin_answer(struct models_call *k)
{
	struct http_header headers[MODELS_HEADERS + 1];
	char notice[USAGE_NOTICE];

	k->status = k->head.status;
	if (k->status == 401) { /* it may quote a part of the key */
		k->status = 502;
		k->finish = "error";
		models_call_refuse(k, 502, "provider_key",
				   "the provider does not accept the key that is stored for it", 0);
		return false;
	}
	if ((k->status >= 300 && k->status < 400) || k->status == 101) {
		bad_answer(k, "the provider answers with a redirect");
		return false;
	}
	if (is_packed(&k->head)) {
		bad_answer(k, "the provider answers in a form that cannot be metered");
		return false;
	}
	if (!k->ep->free) {
		bool sse = is_stream(&k->head);
		meter_init(&k->meter, k->ep->api, sse, k->ep->api == METER_CHAT && !k->ask.usage_asked);
		k->metered = true;
	}
	k->framing = http1_response_framing(&k->head, false);
	bool whole = k->framing == HTTP1_LENGTH && !(k->metered && k->meter.swallow);
	size_t n = models_head_response(&k->head, headers);
	if (usage_notice(k->home->core, &k->usage, notice))
		headers[n++] = (struct http_header){ VIEW("x-paddock-budget-warning"), view_of(notice) };
	http_begin(k->x, k->status, NULL,
		   k->framing == HTTP1_EMPTY ? 0
		   : whole                   ? k->head.content_length
					     : -1,
		   headers, n);
	k->answered = true;
	http1_body_init(&k->unpack, k->framing == HTTP1_CHUNKED  ? -1
				    : k->framing == HTTP1_LENGTH ? k->head.content_length
								 : 0);
	return true;
}

/* False: the call is over. The head's bytes stay in their place, as the parser's views point there. */
static bool take_head(struct models_call *k, struct view data)
{
	while (data.n || k->n_in) {
		size_t n = MIN(HEAD_MAX - k->n_in, data.n);
		memcpy(k->in + k->n_in, data.p, n);
		k->n_in += n;
		data = view_skip(data, n);
		int r = http1_response_parse(&k->head, k->in, k->n_in);
		if (r < 0) {
			bad_answer(k, "the provider's answer is not proper HTTP");
			return false;
		}
		if (r == 0)
			return true;
		if (k->head.status < 200 && k->head.status != 101) {
			k->n_in -= (size_t)r;
			memmove(k->in, k->in + r, k->n_in);
			http1_response_init(&k->head, k->headers, MODELS_HEADERS, HEAD_MAX);
			continue;
		}
		if (!begin_answer(k))
			return false;
		if (k->framing == HTTP1_EMPTY) {
			finish(k);
			return false;
		}
		/* Also without a byte: a length of 0 ends here. */
		struct view more = { k->in + r, k->n_in - (size_t)r };
		return take_body(k, more) && (data.n == 0 || take_body(k, data));
	}
	return true;
}

static void take_end(struct models_call *k)
{
	if (k->answered && k->framing == HTTP1_TO_END)
		finish(k);
	else
		bad_answer(k, "the provider closed the connection");
}

/* ---- the stream ---- */

static void on_stream(struct loop_io *io, uint32_t events);

/* Where nothing is awaited the fd is taken out: hang-ups would come again and again. */
static void wants(struct models_call *k)
{
	uint32_t events = (k->full ? 0 : EPOLLIN) | (buf_len(&k->out) ? EPOLLOUT : 0);
	int r = 0;

	if (events == 0 && k->io.fd >= 0) {
		loop_io_stop(&k->io);
		k->io.fd = -1;
	} else if (events) {
		r = k->io.fd >= 0 ? loop_io_want(&k->io, events)
				  : loop_io_start(k->x->loop, &k->io, k->fd, events, on_stream);
	}
	if (r < 0)
		bad_answer(k, "no memory");
}

static void send_body(struct models_call *k)
{
	while (buf_len(&k->out)) {
		struct view v = buf_view(&k->out);
		ssize_t n = send(k->fd, v.p, v.n, MSG_NOSIGNAL);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) { /* it may have answered all the same */
			buf_clear(&k->out);
			return;
		}
		buf_consume(&k->out, (size_t)n);
	}
}

static bool receive(struct models_call *k)
{
	char piece[PIECE];
	ssize_t n = recv(k->fd, piece, sizeof(piece), 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0) {
		take_end(k);
		return false;
	}
	loop_timer_start(k->x->loop, &k->timer, SILENCE_MS, on_time);
	struct view data = { piece, (size_t)n };
	bool goes_on = k->answered ? take_body(k, data) : take_head(k, data);
	explicit_bzero(piece, (size_t)n);
	return goes_on;
}

static void on_stream(struct loop_io *io, uint32_t events)
{
	struct models_call *k = CONTAINER(io, struct models_call, io);

	if (events & EPOLLOUT)
		send_body(k);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !k->full && !receive(k))
		return;
	wants(k);
}

void models_call_writable(struct models_call *k)
{
	k->full = false;
	if (k->fd >= 0)
		wants(k);
}

/* ---- the beginning ---- */

static void on_dialled(struct carrier_dial *d, int fd, const struct err *e)
{
	struct models_call *k = CONTAINER(d, struct models_call, dial);

	k->dial.call.ops = NULL;
	if (e) {
		models_call_refuse(k, e->code == ERR_TIMEOUT ? 504 : 502, "bad_gateway", e->msg, 1);
		return;
	}
	k->sent = true;
	k->fd = fd;
	k->in = malloc(HEAD_MAX);
	if (!k->in || fd_nonblock(fd, true) < 0) {
		bad_answer(k, "no memory");
		return;
	}
	http1_response_init(&k->head, k->headers, MODELS_HEADERS, HEAD_MAX);
	loop_timer_start(k->x->loop, &k->timer, FIRST_MS, on_time);
	send_body(k);
	wants(k);
}

static int dial(struct models_call *k, struct view ticket, struct err *e)
{
	struct buf head = BUF_INIT(HEAD_MAX);
	const struct http_header key = models_head_key(k->provider);
	bool has_body = !view_is(k->x->method, "GET");
	int r = models_head_request(
		&head, &(struct models_head){ .method = k->x->method,
					      .authority = k->place->authority,
					      .base = k->place->path,
					      .path = k->path,
					      .query = k->x->query,
					      .provider = k->provider,
					      .headers = k->x->headers,
					      .n_headers = k->x->n_headers,
					      .body = has_body ? (int64_t)buf_len(&k->out) : -1 });

	if (r < 0) {
		err_set(e, ERR_TOO_LARGE, "the head is too large");
	} else {
		k->dial.done = on_dialled;
		r = carrier_start(k->home->core, &k->dial,
				  &(struct carrier_target){ k->place->host, k->place->port, k->place->tls,
							    buf_view(&head), ticket, key.name, key.value },
				  e);
		if (r < 0)
			k->dial.call.ops = NULL;
	}
	buf_done(&head);
	return r;
}

static void on_lent(void *arg, const void *result, const struct err *e)
{
	struct models_call *k = arg;
	const struct view *ticket = result;
	char message[160];
	struct err why = { 0 };

	k->key = NULL;
	if (e && e->code == ERR_NOT_FOUND) {
		snprintf(message, sizeof(message), "%s API key not configured: there is no secret %.*s",
			 k->provider == ASK_OPENAI ? "OpenAI" : "Anthropic", VIEW_ARG(k->place->secret));
		models_call_refuse(k, 500, "key_missing", message, 0);
	} else if (e) {
		models_call_fail(k, e);
	} else if (dial(k, *ticket, &why) < 0) {
		models_call_fail(k, &why);
	}
}

void models_call_start(struct models_call *k)
{
	struct box *b = boxes_by_id(k->home->core, view_of(k->box));
	struct allowance_force force = { 0 };
	struct err e = { 0 };

	if (b)
		allowances_of(b, &force);
	k->keeps = force.parts[ALLOWANCE_BODIES] == ALLOWANCE_BODIES_KEPT;
	k->said = k->heard = (struct buf){ .max = TEXT_MAX, .secret = true };
	if (k->keeps)
		keep(&k->said, buf_view(&k->body), &k->said_cut);
	k->out = BUF_INIT(OUT_MAX);
	if (!view_is(k->x->method, "GET") && ask_body(k->ep, &k->ask, buf_view(&k->body), &k->out, &e) < 0) {
		models_call_fail(k, &e);
		return;
	}
	buf_done(&k->body);
	k->key = b ? secrets_lend(b, k->place->secret, k->place->host, on_lent, k, &e) : NULL;
	if (!k->key)
		models_call_fail(k, &e);
}
