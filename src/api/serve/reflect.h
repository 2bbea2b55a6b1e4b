/*
 * What gRPC's tools expect of every server: reflection (v1 and v1alpha) and health. A dialect lists its
 * files; the methods go into its tables.
 */
#pragma once

#include "rpc.h"

/* A .proto file, as gen-wire --descriptors embeds it. A list of them ends with a NULL name. */
struct reflect_file {
	const char *name;
	struct view bytes;          /* a FileDescriptorProto */
	const char *const *symbols; /* what it defines, with the package; ends with NULL */
	const char *const *services;
};

/* Of the request's dialect: its r->surface->files. */
extern const struct rpc_method reflect_methods[];
