/*
 * Reflection and health: see reflect.h.
 */
#include "reflect.h"

#include "answer.h"
#include "dialect.h"
#include "grpcs_gen.h"
#include "poison.h"

extern const struct reflect_file grpcs_descriptors[];

#define NOT_FOUND     5 /* of gRPC */
#define UNIMPLEMENTED 12

/* ---- what there is ---- */

/* The dialect's files, then ours; NULL behind the last. */
static const struct reflect_file *file_at(const struct request *r, size_t i)
{
	for (const struct reflect_file *f = r->surface->files; f && f->name; f++)
		if (i-- == 0)
			return f;
	for (const struct reflect_file *f = grpcs_descriptors; f->name; f++)
		if (i-- == 0)
			return f;
	return NULL;
}

static bool has(const char *const *names, struct view name)
{
	for (; *names; names++)
		if (view_is(name, *names))
			return true;
	return false;
}

/* "sandbox.v1.SandboxService.Exec" and "sandbox.v1.ExecRequest.timeout" are in the file of what they are of.
 */
static const struct reflect_file *find_symbol(const struct request *r, struct view symbol)
{
	while (symbol.n) {
		for (size_t i = 0; file_at(r, i); i++)
			if (has(file_at(r, i)->symbols, symbol))
				return file_at(r, i);
		const char *dot = memrchr(symbol.p, '.', symbol.n);
		symbol.n = dot ? (size_t)(dot - symbol.p) : 0;
	}
	return NULL;
}

static const struct reflect_file *find_name(const struct request *r, struct view name)
{
	for (size_t i = 0; file_at(r, i); i++)
		if (view_is(name, file_at(r, i)->name))
			return file_at(r, i);
	return NULL;
}

static bool is_served(const struct request *r, struct view service)
{
	for (size_t i = 0; file_at(r, i); i++)
		if (has(file_at(r, i)->services, service))
			return true;
	return false;
}

/* ---- reflection ---- */

static void send_file(struct request *r, struct grpcs_server_reflection_response *a,
		      const struct reflect_file *f)
{
	struct view bytes = f ? f->bytes : VIEW("");
	struct grpcs_file_descriptor_response found = { .file_descriptor_proto = { &bytes, 1 } };
	struct grpcs_error_response none = { NOT_FOUND, VIEW("there is no such file or symbol") };

	if (f)
		a->file_descriptor_response = &found;
	else
		a->error_response = &none;
	rpc_send(r, a);
}

static void send_services(struct request *r, struct grpcs_server_reflection_response *a)
{
	struct grpcs_service_response services[16];
	struct grpcs_list_service_response list = { .service = { services, 0 } };

	for (size_t i = 0; file_at(r, i); i++)
		for (const char *const *s = file_at(r, i)->services; *s && list.service.n < ELEMS(services);
		     s++)
			services[list.service.n++].name = view_of(*s);
	a->list_services_response = &list;
	rpc_send(r, a);
}

static void on_question(struct request *r, const void *msg)
{
	const struct grpcs_server_reflection_request *q = msg;
	struct grpcs_server_reflection_response a = {
		.valid_host = q->host,
		.original_request = (struct grpcs_server_reflection_request *)(uintptr_t)q
	};
	struct grpcs_error_response none = { UNIMPLEMENTED, VIEW("there are no extensions here") };

	if (!rpc_of(r)->begun)
		rpc_begin(r, NULL);
	if (q->has_file_by_filename) {
		send_file(r, &a, find_name(r, q->file_by_filename));
	} else if (q->has_file_containing_symbol) {
		send_file(r, &a, find_symbol(r, q->file_containing_symbol));
	} else if (q->has_list_services) {
		send_services(r, &a);
	} else {
		a.error_response = &none;
		rpc_send(r, &a);
	}
	rpc_go_on(r);
}

static void on_end(struct request *r)
{
	if (!rpc_of(r)->begun)
		rpc_begin(r, NULL);
	rpc_end(r);
}

/* ---- health ---- */

static int status_of(const struct request *r, struct view service)
{
	if (service.n && !is_served(r, service))
		return GRPCS_SERVICE_UNKNOWN;
	return core_not_ready(r->core) ? GRPCS_NOT_SERVING : GRPCS_SERVING;
}

static void check(struct request *r, const void *msg)
{
	const struct grpcs_health_check_request *q = msg;
	struct grpcs_health_check_response a = { .status = status_of(r, q->service) };
	struct err e = { 0 };

	if (a.status == GRPCS_SERVICE_UNKNOWN) {
		err_set(&e, ERR_NOT_FOUND, "there is no such service");
		answer_fail(r, &e);
	} else {
		rpc_reply(r, &a);
	}
}

/* What serves, serves until it goes, and that ends the stream. */
static void watch(struct request *r, const void *msg)
{
	const struct grpcs_health_check_request *q = msg;

	rpc_begin(r, NULL);
	rpc_send(r, &(struct grpcs_health_check_response){ .status = status_of(r, q->service) });
	r->on_drain = rpc_end;
}

#define REFLECTION(version)                                                                                  \
	{                                                                                                    \
		"/grpc.reflection." version ".ServerReflection/ServerReflectionInfo", RPC_BIDI,              \
			&grpcs_server_reflection_request_msg, &grpcs_server_reflection_response_msg,         \
			on_question, on_end                                                                  \
	}

const struct rpc_method reflect_methods[] = {
	{ "/grpc.health.v1.Health/Check", RPC_UNARY, &grpcs_health_check_request_msg,
	  &grpcs_health_check_response_msg, check },
	{ "/grpc.health.v1.Health/Watch", RPC_SERVER, &grpcs_health_check_request_msg,
	  &grpcs_health_check_response_msg, watch },
	REFLECTION("v1"),
	REFLECTION("v1alpha"),
	{ 0 },
};
