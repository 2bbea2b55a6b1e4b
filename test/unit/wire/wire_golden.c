/*
 * Prints every message of api/wire.proto and api/signer.proto as the programs encode it: its fields, from the
 * tables of the codec, and the bytes of a sample in which every field has a value. And a frame of every kind.
 * test/it/test_golden_wire.py compares that with the recording.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "pb.h"
#include "signer_gen.h"
#include "wire_gen.h"
#include "poison.h"

#define ITEMS 2 /* of a repeated field */

static const struct {
	const char *name;
	size_t size;
} kinds[] = {
	[PB_U32] = { "uint32", sizeof(uint32_t) },     [PB_U64] = { "uint64", sizeof(uint64_t) },
	[PB_I32] = { "int32", sizeof(int32_t) },       [PB_I64] = { "int64", sizeof(int64_t) },
	[PB_S32] = { "sint32", sizeof(int32_t) },      [PB_S64] = { "sint64", sizeof(int64_t) },
	[PB_BOOL] = { "bool", sizeof(bool) },          [PB_ENUM] = { "enum", sizeof(int32_t) },
	[PB_DOUBLE] = { "double", sizeof(double) },    [PB_STRING] = { "string", sizeof(struct view) },
	[PB_BYTES] = { "bytes", sizeof(struct view) }, [PB_MSG] = { NULL, sizeof(void *) },
};

static void *room(struct arena *a, size_t n)
{
	void *p = arena_alloc(a, n ? n : 1);

	if (!p)
		abort();
	return memset(p, 0, n);
}

/* A value that the field's number tells: no two fields of a message have the same. A message within a message
 * is empty: it has a sample of its own. */
static void fill_value(const struct pb_field *f, char *at, unsigned nth)
{
	const uint32_t n = f->number * 100 + nth;
	const struct view text = view_of(f->name);

	switch ((enum pb_kind)f->kind) {
	case PB_U32:
		*(uint32_t *)(void *)at = n;
		break;
	case PB_U64:
		*(uint64_t *)(void *)at = (UINT64_C(1) << 40) + n;
		break;
	case PB_I32:
	case PB_S32:
		*(int32_t *)(void *)at = -(int32_t)n;
		break;
	case PB_I64:
	case PB_S64:
		*(int64_t *)(void *)at = -(int64_t)n;
		break;
	case PB_ENUM:
		*(int32_t *)(void *)at = 1;
		break;
	case PB_BOOL:
		*(bool *)(void *)at = true;
		break;
	case PB_DOUBLE:
		*(double *)(void *)at = n + 0.5;
		break;
	case PB_STRING:
	case PB_BYTES:
		*(struct view *)(void *)at = view_head(text, text.n - nth);
		break;
	case PB_MSG:
		break;
	}
}

static void fill(struct arena *a, const struct pb_msg *m, char *out)
{
	unsigned seen = 0; /* oneofs of which a member is set already */

	for (unsigned i = 0; i < m->n_fields; i++) {
		const struct pb_field *f = &m->fields[i];
		char *at = out + f->offset;
		if (f->oneof && seen & 1u << f->oneof)
			continue;
		seen |= f->oneof ? 1u << f->oneof : 0;
		if (f->has)
			*(bool *)(void *)(out + f->has) = true;
		if (f->repeated) {
			const size_t size = f->kind == PB_MSG ? f->sub->size : kinds[f->kind].size;
			struct pb_list *list = (struct pb_list *)(void *)at;
			list->n = ITEMS;
			list->items = room(a, ITEMS * size);
			for (unsigned k = 0; k < ITEMS; k++)
				fill_value(f, (char *)list->items + k * size, k);
		} else if (f->kind == PB_MSG) {
			*(void **)(void *)at = room(a, f->sub->size);
		} else {
			fill_value(f, at, 0);
		}
	}
}

static void print_bytes(const char *title, struct view v)
{
	printf("%s", title);
	for (size_t i = 0; i < v.n; i++)
		printf("%02x", (unsigned char)v.p[i]);
	printf("\n");
}

static void print_message(const struct pb_msg *m)
{
	struct arena a = ARENA_INIT(16 << 20);
	struct buf once = BUF_INIT(4 << 20), again = BUF_INIT(4 << 20);
	char *sample = room(&a, m->size), *read = room(&a, m->size);

	printf("=== %s\n", m->name);
	for (unsigned i = 0; i < m->n_fields; i++) {
		const struct pb_field *f = &m->fields[i];
		printf("%u %s%s%s %s", f->number, f->repeated ? "repeated " : "",
		       f->has && !f->oneof ? "optional " : "",
		       f->kind == PB_MSG ? f->sub->name : kinds[f->kind].name, f->name);
		printf(f->oneof ? " oneof %u\n" : "\n", f->oneof);
	}
	fill(&a, m, sample);
	if (pb_encode(m, sample, &once) < 0 || pb_decode(m, buf_view(&once), 0, &a, read) < 0 ||
	    pb_encode(m, read, &again) < 0 || !view_eq(buf_view(&once), buf_view(&again))) {
		fprintf(stderr, "%s does not survive the codec\n", m->name);
		exit(1);
	}
	print_bytes("sample: ", buf_view(&once));
	buf_done(&once);
	buf_done(&again);
	arena_done(&a);
}

static void print_frame(const char *name, const struct frame *f)
{
	struct buf b = BUF_INIT(1024);

	printf("=== frame %s\n", name);
	if (frame_put(&b, f) < 0)
		exit(1);
	print_bytes("", buf_view(&b));
	buf_done(&b);
}

int main(void)
{
	const struct view body = VIEW("body");

	print_frame("CALL", &(struct frame){ .kind = FRAME_CALL,
					     .type = 0x0102,
					     .flags = FRAME_FD,
					     .stream = 0x03040506,
					     .deadline_ms = 0x0708090a,
					     .body = body });
	print_frame("REPLY", &(struct frame){ .kind = FRAME_REPLY,
					      .type = 7,
					      .flags = FRAME_LAST | FRAME_FD,
					      .stream = 1,
					      .body = body });
	print_frame("FAIL", &(struct frame){ .kind = FRAME_FAIL, .stream = 1, .body = body });
	print_frame("DATA", &(struct frame){ .kind = FRAME_DATA, .type = 2, .stream = 1, .body = body });
	print_frame("END", &(struct frame){ .kind = FRAME_END, .stream = 1 });
	print_frame("WINDOW_ADD", &(struct frame){ .kind = FRAME_WINDOW_ADD, .stream = 1, .body = body });
	print_frame("CANCEL", &(struct frame){ .kind = FRAME_CANCEL, .stream = 1 });
	print_frame("EVENT", &(struct frame){ .kind = FRAME_EVENT, .type = 7, .body = body });
	for (size_t i = 0; i < WIRE_MESSAGES; i++)
		print_message(wire_messages[i]);
	for (size_t i = 0; i < SGN_MESSAGES; i++)
		print_message(sgn_messages[i]);
	return 0;
}
