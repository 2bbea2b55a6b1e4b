/*
 * What the handlers of files share.
 */
#pragma once

#include "file.h"
#include "rest_impl.h"

struct file_info;

/* A file as JSON. With `with_path` its name is a path relative to what was asked for. */
void rest_files_put(struct json_out *o, const struct file_info *info, bool with_path);
/* key: text, and where it is no UTF-8 also KEY_base64 */
void rest_files_put_bytes(struct json_out *o, const char *key, const char *key_base64, struct view v);
/* {"files":…,"directories":…,"bytes":…,"skipped":…} */
void rest_files_put_sum(struct json_out *o, const struct file_sum *sum);
/* The handler of /v1/sandboxes/{id}/files/{path}, for those who give it a box of their own. */
const struct route *rest_files_route(const char *method);
/* Octal, between 1 and 7777. */
int rest_files_mode(struct view v, unsigned *ret, struct err *e) _must_check_;

/* Where a request for /v1/sandboxes/{id}/files/{path} leads, if its signature (where it has one) permits. */
int rest_files_place(struct request *r, struct file_place *ret, struct err *e) _must_check_;
/* 1: archive=tar, 0: none, -1: something else. */
int rest_files_archive(const struct request *r, struct err *e) _must_check_;

/* Handlers of /v1/sandboxes/{id}/files/{path}: rest_download.c, rest_upload.c. */
void rest_download(struct request *r);
void rest_upload(struct request *r);
