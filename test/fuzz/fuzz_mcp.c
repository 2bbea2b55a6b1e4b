/*
 * MCP: what a client may send as a message, a header and a sealed state. A state that we have not made never
 * opens; a message that is taken has what its kind needs.
 */
#include <string.h>

#include "fuzz.h"
#include "mcp_impl.h"

#include "poison.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t key[32] = { 7 };
	struct arena a = ARENA_INIT(16u << 20);
	struct buf out = BUF_INIT(MCP_STATE_MAX);
	struct view in = { (const char *)data, size };
	struct err e = { 0 };
	struct json *doc;

	if (json_parse(&a, in, &doc, &e) >= 0) {
		struct mcp_message m = mcp_rpc_read(doc);
		FUZZ_CHECK(m.kind == MCP_MESSAGE_BAD || m.kind == MCP_MESSAGE_NOTE || m.id);
		FUZZ_CHECK((m.kind == MCP_MESSAGE_REQUEST || m.kind == MCP_MESSAGE_NOTE) ==
			   (m.method.p != NULL));
		FUZZ_CHECK(m.kind != MCP_MESSAGE_RESPONSE || !m.result != !m.error);
		(void)mcp_rpc_caps(doc);
	}
	struct view header = mcp_rpc_header(&a, in);
	FUZZ_CHECK(!header.p || header.n <= size);
	FUZZ_CHECK(mcp_seal_open(key, VIEW("fuzz"), 0, in, &out) < 0 && buf_len(&out) == 0);
	buf_done(&out);
	arena_done(&a);
	return 0;
}
