/* GET /v1/sandboxes/{id}/files/{path}. */
#pragma once

struct req;
struct file_place;

void rest_download(struct req *r);
/* The bytes of a file that somebody else found; whatever the handler owned is freed. */
void rest_download_bytes(struct req *r, const struct file_place *p);
