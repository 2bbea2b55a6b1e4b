/*
 * Frames: see websocket.h.
 *
 *   byte 0   FIN, three reserved bits, opcode (4)
 *   byte 1   MASK, length (7): the length itself, 126 (16 bits follow) or 127 (64 bits follow)
 *   mask     4 bytes, of a client only
 *   payload  each byte xor the mask's, in turn
 */
#include "websocket.h"

#include <errno.h>

#include "rnd.h"
#include "text.h"
#include "poison.h"

static int fail(struct websocket *w, uint16_t code, const char *why)
{
	w->failed = true;
	w->code = code;
	w->why = why;
	return -1;
}

void websocket_init(struct websocket *w, enum websocket_role role, uint64_t max_message)
{
	*w = (struct websocket){ .role = role, .max_message = max_message };
}

/* ---- UTF-8 that comes in pieces ---- */

/*
 * What is due of a character: how many continuation bytes, and between which
 * bounds the next one must lie (Unicode, table 3-7). 0: a character begins.
 */
static uint32_t due(uint32_t left, uint8_t low, uint8_t high)
{
	return left << 16 | (uint32_t)low << 8 | high;
}

static bool utf8_begin(uint32_t *state, uint8_t c)
{
	if (c < 0x80)
		*state = 0;
	else if (c >= 0xc2 && c <= 0xdf)
		*state = due(1, 0x80, 0xbf);
	else if (c == 0xe0)
		*state = due(2, 0xa0, 0xbf);
	else if (c == 0xed)
		*state = due(2, 0x80, 0x9f);
	else if (c >= 0xe1 && c <= 0xef)
		*state = due(2, 0x80, 0xbf);
	else if (c == 0xf0)
		*state = due(3, 0x90, 0xbf);
	else if (c >= 0xf1 && c <= 0xf3)
		*state = due(3, 0x80, 0xbf);
	else if (c == 0xf4)
		*state = due(3, 0x80, 0x8f);
	else
		return false;
	return true;
}

static bool utf8_take(uint32_t *state, struct view v)
{
	for (size_t i = 0; i < v.n; i++) {
		uint8_t c = (uint8_t)v.p[i];
		uint32_t left = *state >> 16;
		if (left == 0) {
			if (!utf8_begin(state, c))
				return false;
		} else {
			if (c < (*state >> 8 & 0xff) || c > (*state & 0xff))
				return false;
			*state = left == 1 ? 0 : due(left - 1, 0x80, 0xbf);
		}
	}
	return true;
}

/* ---- the head of a frame ---- */

static bool is_control(uint8_t opcode)
{
	return opcode & 8;
}

/* How long the head is, as far as it is known. */
static size_t head_size(const struct websocket *w)
{
	size_t n = 2;

	if (w->n_head < 2)
		return n;
	switch (w->head[1] & 0x7f) {
	case 126:
		n += 2;
		break;
	case 127:
		n += 8;
		break;
	default:
		break;
	}
	return n + (w->head[1] & 0x80 ? 4 : 0);
}

/* The first two bytes tell most of what can be wrong, and are judged as soon as they are there. */
static int check_start(struct websocket *w)
{
	uint8_t opcode = w->head[0] & 0x0f, length = w->head[1] & 0x7f;
	bool fin = w->head[0] & 0x80, masked = w->head[1] & 0x80;

	if (w->head[0] & 0x70)
		return fail(w, WEBSOCKET_PROTOCOL, "reserved bits are set");
	if (opcode > WEBSOCKET_PONG || (opcode > WEBSOCKET_BINARY && opcode < WEBSOCKET_CLOSE))
		return fail(w, WEBSOCKET_PROTOCOL, "unknown opcode");
	if (masked != (w->role == WEBSOCKET_SERVER))
		return fail(w, WEBSOCKET_PROTOCOL,
			    masked ? "a server's frame is masked" : "a client's frame is not masked");
	if (is_control(opcode) && (!fin || length > WEBSOCKET_CONTROL))
		return fail(w, WEBSOCKET_PROTOCOL, "a control frame is long or in fragments");
	if (opcode == WEBSOCKET_MORE && !w->message)
		return fail(w, WEBSOCKET_PROTOCOL, "a continuation of nothing");
	if ((opcode == WEBSOCKET_TEXT || opcode == WEBSOCKET_BINARY) && w->message)
		return fail(w, WEBSOCKET_PROTOCOL, "a message begins within another");
	return 0;
}

static int read_length(struct websocket *w)
{
	uint8_t length = w->head[1] & 0x7f;
	size_t bytes = length == 126 ? 2 : length == 127 ? 8 : 0;
	uint64_t n = bytes ? 0 : length;

	for (size_t i = 0; i < bytes; i++)
		n = n << 8 | w->head[2 + i];
	if ((bytes == 2 && n < 126) || (bytes == 8 && n <= UINT16_MAX))
		return fail(w, WEBSOCKET_PROTOCOL, "a length is not in its shortest form");
	if (n >> 63)
		return fail(w, WEBSOCKET_PROTOCOL, "a length has its highest bit set");
	w->left = n;
	if (w->head[1] & 0x80)
		memcpy(w->mask, w->head + 2 + bytes, 4);
	w->mask_at = 0;
	return 0;
}

static int begin_frame(struct websocket *w)
{
	w->opcode = w->head[0] & 0x0f;
	w->fin = w->head[0] & 0x80;
	w->in_payload = true;
	w->n_head = 0;
	if (is_control(w->opcode)) {
		w->n_control = 0;
		return 0;
	}
	if (w->opcode != WEBSOCKET_MORE) {
		w->message = w->opcode;
		w->size = 0;
		w->utf8 = 0;
		w->begun = false;
	}
	if (w->left > w->max_message - w->size)
		return fail(w, WEBSOCKET_TOO_BIG, "the message is too large");
	w->size += w->left;
	return 0;
}

/* 1 when the head is complete. */
static int take_head(struct websocket *w, struct view *in)
{
	while (in->n) {
		w->head[w->n_head++] = (uint8_t)in->p[0];
		*in = view_skip(*in, 1);
		if (w->n_head == 2 && check_start(w) < 0)
			return -1;
		if (w->n_head >= 2 && w->n_head == head_size(w))
			return read_length(w) < 0 || begin_frame(w) < 0 ? -1 : 1;
	}
	return 0;
}

/* ---- payload ---- */

static void unmask(struct websocket *w, struct view from, char *to)
{
	bool masked = w->role == WEBSOCKET_SERVER;

	for (size_t i = 0; i < from.n; i++)
		to[i] = (char)(masked ? from.p[i] ^ (char)w->mask[w->mask_at++ & 3] : from.p[i]);
}

static bool is_code(unsigned code)
{
	return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
	       (code >= 3000 && code <= 4999);
}

static int give_close(struct websocket *w, struct websocket_piece *ret)
{
	struct view body = { w->control, w->n_control };

	w->closed = true;
	ret->code = WEBSOCKET_NO_CODE;
	if (body.n == 0)
		return 1;
	if (body.n == 1)
		return fail(w, WEBSOCKET_PROTOCOL, "half a close code");
	ret->code = (uint16_t)((uint8_t)body.p[0] << 8 | (uint8_t)body.p[1]);
	ret->data = view_skip(body, 2);
	if (!is_code(ret->code))
		return fail(w, WEBSOCKET_PROTOCOL, "no such close code");
	if (!text_is_utf8(ret->data))
		return fail(w, WEBSOCKET_NOT_TEXT, "the reason is not UTF-8");
	return 1;
}

/* 1 when the frame is complete. */
static int take_control(struct websocket *w, struct view *in, struct websocket_piece *ret)
{
	struct view v = view_head(*in, (size_t)w->left);

	unmask(w, v, w->control + w->n_control);
	w->n_control += v.n;
	w->left -= v.n;
	*in = view_skip(*in, v.n);
	if (w->left)
		return 0;
	w->in_payload = false;
	*ret = (struct websocket_piece){ .kind = (enum websocket_op)w->opcode, .first = true, .last = true };
	if (w->opcode == WEBSOCKET_CLOSE)
		return give_close(w, ret);
	ret->data = (struct view){ w->control, w->n_control };
	return 1;
}

static int take_data(struct websocket *w, struct view *in, struct websocket_piece *ret)
{
	struct view v = view_head(*in, (size_t)MIN(w->left, (uint64_t)WEBSOCKET_PIECE));
	bool ends = v.n == w->left, last = ends && w->fin;

	if (v.n == 0 && !ends)
		return 0;
	unmask(w, v, w->piece);
	w->left -= v.n;
	*in = view_skip(*in, v.n);
	if (ends)
		w->in_payload = false;
	*ret = (struct websocket_piece){ .kind = (enum websocket_op)w->message,
					 .data = { w->piece, v.n },
					 .first = !w->begun,
					 .last = last };
	if (w->message == WEBSOCKET_TEXT && (!utf8_take(&w->utf8, ret->data) || (last && w->utf8 != 0)))
		return fail(w, WEBSOCKET_NOT_TEXT, "a text is not UTF-8");
	if (last)
		w->message = 0;
	if (v.n == 0 && !last)
		return 0; /* a fragment without bytes says nothing, unless it is the end */
	w->begun = true;
	return 1;
}

int websocket_next(struct websocket *w, struct view *in, struct websocket_piece *ret)
{
	if (w->failed)
		return -1;
	while (!w->closed) {
		int r = w->in_payload ? 1 : take_head(w, in);
		if (r <= 0)
			return r;
		r = is_control(w->opcode) ? take_control(w, in, ret) : take_data(w, in, ret);
		if (r != 0)
			return r;
		if (in->n == 0)
			return 0;
	}
	*in = VIEW_NONE; /* after a close nothing counts */
	return 0;
}

/* ---- sending ---- */

int websocket_put(struct buf *out, enum websocket_role role, enum websocket_op op, struct view data)
{
	uint8_t head[14] = { 0x80 | (uint8_t)op }, mask[4] = { 0 };
	bool masked = role == WEBSOCKET_CLIENT;
	size_t n = 2, bytes = data.n < 126 ? 0 : data.n <= UINT16_MAX ? 2 : 8;

	head[1] = (uint8_t)((masked ? 0x80 : 0) | (bytes == 0 ? data.n : bytes == 2 ? 126u : 127u));
	for (size_t i = 0; i < bytes; i++)
		head[n++] = (uint8_t)((uint64_t)data.n >> 8 * (bytes - 1 - i));
	if (masked) {
		rnd_bytes(mask, sizeof(mask));
		memcpy(head + n, mask, sizeof(mask));
		n += sizeof(mask);
	}
	buf_append(out, head, n);
	if (!masked || data.n == 0)
		return buf_add(out, data);
	char *p = buf_reserve(out, data.n);
	if (!p)
		return out->bad;
	for (size_t i = 0; i < data.n; i++)
		p[i] = (char)(data.p[i] ^ (char)mask[i & 3]);
	buf_commit(out, data.n);
	return out->bad;
}

int websocket_put_close(struct buf *out, enum websocket_role role, uint16_t code, struct view reason)
{
	char body[WEBSOCKET_CONTROL];
	size_t n = MIN(reason.n, sizeof(body) - 2);

	if (code == WEBSOCKET_NO_CODE)
		return websocket_put(out, role, WEBSOCKET_CLOSE, VIEW_NONE);
	n = text_utf8_prefix(view_head(reason, n));
	body[0] = (char)(code >> 8);
	body[1] = (char)code;
	if (n)
		memcpy(body + 2, reason.p, n);
	return websocket_put(out, role, WEBSOCKET_CLOSE, (struct view){ body, n + 2 });
}

/* ---- the handshake ---- */

static uint32_t rotate(uint32_t v, unsigned n)
{
	return v << n | v >> (32 - n);
}

/* SHA-1 of one padded block after another; it proves nothing here but that the peer knows WebSocket. */
static void sha1_block(uint32_t h[5], const uint8_t block[64])
{
	static const uint32_t k[] = { 0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6 };
	uint32_t w[80], a = h[0], b = h[1], c = h[2], d = h[3], e = h[4];

	for (int i = 0; i < 16; i++)
		w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
		       (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
	for (int i = 16; i < 80; i++)
		w[i] = rotate(w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16], 1);
	for (int i = 0; i < 80; i++) {
		uint32_t f = i < 20              ? (b & c) | (~b & d)
			     : i >= 40 && i < 60 ? (b & c) | (b & d) | (c & d)
						 : b ^ c ^ d;
		uint32_t t = rotate(a, 5) + f + e + k[i / 20] + w[i];
		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = t;
	}
	h[0] += a;
	h[1] += b;
	h[2] += c;
	h[3] += d;
	h[4] += e;
}

int websocket_accept(struct view key, char ret[WEBSOCKET_ACCEPT])
{
	static const char magic[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	uint32_t h[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint8_t text[128] = { 0 }, hash[20];
	struct buf b = BUF_INIT(64);
	size_t n = key.n + sizeof(magic) - 1;

	/* 16 bytes in base64 */
	int r = key.n == 24 ? text_unbase64(&b, key) : -EINVAL;
	bool ok = r >= 0 && buf_len(&b) == 16;
	buf_done(&b);
	if (!ok)
		return -EINVAL;
	memcpy(text, key.p, key.n);
	memcpy(text + key.n, magic, sizeof(magic) - 1);
	text[n] = 0x80;
	text[126] = (uint8_t)(n * 8 >> 8);
	text[127] = (uint8_t)(n * 8);
	sha1_block(h, text);
	sha1_block(h, text + 64);
	for (int i = 0; i < 20; i++)
		hash[i] = (uint8_t)(h[i / 4] >> (24 - 8 * (i % 4)));
	r = text_base64(&b, (struct view){ (const char *)hash, sizeof(hash) });
	if (r >= 0)
		r = view_to_str(buf_view(&b), ret, WEBSOCKET_ACCEPT);
	buf_done(&b);
	return r;
}
