/*
 * assegai.json: a manifest that is read is written in one form, which reads as the same. What is no manifest
 * is tried as a request of JSON-RPC and as a node's answer.
 */
#include "manifest.h"
#include "ethrpc.h"
#include "fuzz.h"

#include "poison.h"

static void check_manifest(struct arena *a, const struct manifest *m)
{
	struct buf once = BUF_INIT(1 << 20), twice = BUF_INIT(1 << 20);
	struct manifest again;
	struct json_out o;
	struct json *doc;
	struct err e = { 0 };

	json_out_init(&o, &once);
	manifest_put(&o, m);
	FUZZ_CHECK(!once.bad);
	FUZZ_CHECK(json_parse(a, buf_view(&once), &doc, &e) >= 0);
	FUZZ_CHECK(manifest_read(a, doc, &again, &e) >= 0);
	json_out_init(&o, &twice);
	manifest_put(&o, &again);
	FUZZ_CHECK(view_eq(buf_view(&once), buf_view(&twice)));
	buf_done(&once);
	buf_done(&twice);
}

static void check_rpc(struct arena *a, const struct ethrpc_request *r)
{
	struct buf out = BUF_INIT(1 << 24);
	struct ethrpc_request again;
	struct json_out o;
	struct json *doc;
	struct err e = { 0 };

	json_out_init(&o, &out);
	ethrpc_put(&o, r, 1);
	if (!out.bad) { /* it may be too deep to be written */
		FUZZ_CHECK(json_parse(a, buf_view(&out), &doc, &e) >= 0);
		FUZZ_CHECK(ethrpc_read(doc, &again, &e) >= 0);
		FUZZ_CHECK(view_eq(r->method, again.method) && r->class == again.class);
	}
	buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct arena a = ARENA_INIT(64u << 20);
	struct view in = { (const char *)data, size };
	struct ethrpc_result results[2];
	struct ethrpc_request r;
	struct manifest m;
	struct err e = { 0 };
	struct json *doc;

	if (json_parse(&a, in, &doc, &e) >= 0) {
		if (manifest_read(&a, doc, &m, &e) >= 0)
			check_manifest(&a, &m);
		if (ethrpc_read(doc, &r, &e) >= 0) {
			check_rpc(&a, &r);
			(void)!ethrpc_check(&r, &e);
		}
	}
	(void)!ethrpc_answers(&a, in, 0, 1, false, results, &e);
	(void)!ethrpc_answers(&a, in, 0, 2, true, results, &e);
	arena_done(&a);
	return 0;
}
