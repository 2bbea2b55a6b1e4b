/*
 * Which box and port a request names, from its head alone. Pure.
 */
#pragma once

#include "http_header.h"
#include "view.h"

struct plane_name {
	struct view id;
	uint16_t port; /* 0: none named */
	bool by_host;
	struct view path;   /* what the box sees; empty: not even a slash */
	struct view prefix; /* below a path of ours: what stands for "/" */
	struct view ticket; /* of a signed link, where the path holds one */
};

/* "8080-ID.domain", with or without ":443"; the case of ASCII does not matter. False: another host. */
bool plane_target_host(struct view host, struct view domain, struct plane_name *ret) _must_check_;
/* "/v1/sandboxes/ID/ports/8080/…" and "/v1/previews/ID/8080/TICKET/…". False: another path. */
bool plane_target_path(struct view path, struct plane_name *ret) _must_check_;
/* Agent-Sandbox's /sandboxes/router/ID/PORT/… */
bool plane_target_router(struct view path, struct plane_name *ret) _must_check_;
/* A port's digits. */
bool plane_target_port(struct view v, uint16_t *ret) _must_check_;
