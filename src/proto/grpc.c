/*
 * gRPC: see grpc.h.
 */
#include "grpc.h"

#include <errno.h>

#include "num.h"
#include "poison.h"

#define TIMEOUT_DIGITS 8

static const struct {
	const char *name;
	struct grpc_type type;
} types[] = {
	{ "application/grpc+proto", { GRPC_PLAIN, CONNECT_PROTO } },
	{ "application/grpc+json", { GRPC_PLAIN, CONNECT_JSON } },
	{ "application/grpc-web+proto", { GRPC_WEB, CONNECT_PROTO } },
	{ "application/grpc-web+json", { GRPC_WEB, CONNECT_JSON } },
	{ "application/grpc", { GRPC_PLAIN, CONNECT_PROTO } },
	{ "application/grpc-web", { GRPC_WEB, CONNECT_PROTO } },
};

struct grpc_type grpc_type(struct view content_type)
{
	struct view parameters, name = view_trim(view_split(content_type, ';', &parameters));

	for (size_t i = 0; i < ELEMS(types); i++)
		if (view_eq_nocase(name, view_of(types[i].name)))
			return types[i].type;
	return (struct grpc_type){ GRPC_NONE, CONNECT_NONE };
}

const char *grpc_type_name(struct grpc_type t)
{
	for (size_t i = 0; i < ELEMS(types); i++)
		if (types[i].type.form == t.form && types[i].type.codec == t.codec)
			return types[i].name;
	return NULL;
}

int grpc_timeout(struct view header, uint64_t *ret_ms)
{
	static const struct {
		char unit;
		uint64_t ms, parts; /* so many milliseconds, or parts of one */
	} units[] = { { 'H', 3600000, 1 }, { 'M', 60000, 1 }, { 'S', 1000, 1 },
		      { 'm', 1, 1 },       { 'u', 1, 1000 },  { 'n', 1, 1000000 } };
	uint64_t n;

	if (header.n < 2 || header.n > TIMEOUT_DIGITS + 1 || num_u64(view_head(header, header.n - 1), &n) < 0)
		return -EINVAL;
	for (size_t i = 0; i < ELEMS(units); i++)
		if (header.p[header.n - 1] == units[i].unit) {
			*ret_ms = MAX(n * units[i].ms / units[i].parts, (uint64_t)1);
			return 0;
		}
	return -EINVAL;
}

void grpc_message(const char *text, char ret[GRPC_MESSAGE])
{
	static const char digits[] = "0123456789ABCDEF";
	size_t n = 0;

	for (; *text && n + 4 <= GRPC_MESSAGE; text++) {
		unsigned char c = (unsigned char)*text;
		if (c >= 0x20 && c <= 0x7e && c != '%') {
			ret[n++] = (char)c;
			continue;
		}
		ret[n++] = '%';
		ret[n++] = digits[c >> 4];
		ret[n++] = digits[c & 15];
	}
	ret[n] = 0;
}

int grpc_put_end(struct buf *out, const struct err *e)
{
	struct buf text = BUF_INIT(GRPC_MESSAGE + 64);
	uint8_t head[CONNECT_HEAD];
	char message[GRPC_MESSAGE];

	buf_printf(&text, "grpc-status: %d\r\n", e ? err_grpc(e->code) : 0);
	if (e) {
		grpc_message(e->msg, message);
		buf_printf(&text, "grpc-message: %s\r\n", message);
	}
	connect_head(head, GRPC_END, (uint32_t)buf_len(&text));
	buf_append(out, head, sizeof(head));
	buf_add(out, buf_view(&text));
	buf_done(&text);
	return out->bad;
}
