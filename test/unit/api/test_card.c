/*
 * The card as text: whatever the agent, a node, a token or a key's name says, it is one line in its own
 * place, and no line of the card is anybody else's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "address.h"
#include "card.h"
#include "core_base.h"
#include "spend.h"
#include "text.h"
#include "poison.h"

#define EVIL                                                                                                 \
	"x\r\n\nDigest 0x00\n  DANGER    none\x1b[2J\x1b]52;c;AAAA\x07\b\x7f\xc2\x9b"                        \
	"31m\xe2\x80\xae\xe2\x80\xa8"                                                                        \
	"\xe2\x80\x8b\xc2\xad\xef\xbb\xbf\xef\xbf\xb9\xf3\xa0\x81\x81\xff\xc3"
#define PLAIN "plain"

/* What a terminal acts on, or hides. */
static void assert_harmless(struct view text)
{
	static const char *const never[] = { "\xc2\x9b", "\xe2\x80\xae", "\xe2\x80\xa8", "\xe2\x80\x8b",
					     "\xc2\xad", "\xef\xbb\xbf", "\xef\xbf\xb9", "\xf3\xa0\x81\x81" };

	assert_true(text_is_utf8(text));
	for (size_t i = 0; i < text.n; i++)
		assert_true((unsigned char)text.p[i] >= ' ' || text.p[i] == '\n');
	assert_null(memchr(text.p, 0x7f, text.n));
	for (size_t i = 0; i < ELEMS(never); i++)
		assert_null(memmem(text.p, text.n, never[i], strlen(never[i])));
}

static unsigned count_lines(const struct buf *b)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->n; i++)
		n += b->p[i] == '\n';
	return n;
}

static void make(struct buf *out, struct view said, const char *name, int32_t kind)
{
	static const uint8_t one[1] = { 1 }, hash[32] = { 0xab };
	const struct view address = { (const char *)address_native, ADDRESS_SIZE },
			  amount = { (const char *)one, 1 }, digest = { (const char *)hash, 32 };
	struct sgn_effect effects[] = {
		{ .asset = address, .amount = amount, .to = address, .symbol = said, .note = said },
		{ .asset = digest,
		  .amount = amount,
		  .to = address,
		  .approval = true,
		  .decimals = 6,
		  .symbol = said,
		  .note = said,
		  .allowance = amount }
	};
	struct sgn_check trace[] = { { .name = said, .text = said },
				     { .name = said, .text = said, .passed = true } };
	struct sgn_risk risks[] = { { .name = said, .text = said, .level = SGN_RISK_LEVEL_DANGER } };
	struct sgn_limit_line limits[] = { { .scope = said,
					     .window = said,
					     .asset = address,
					     .symbol = said,
					     .before = amount,
					     .after = amount,
					     .limit = amount } };
	struct sgn_item item = { .id = said,
				 .agent = said,
				 .kind = kind,
				 .chain = 1,
				 .wallet = said,
				 .from = address,
				 .to = address,
				 .value = amount,
				 .data = said,
				 .state = SGN_STATE_PENDING,
				 .call_class = said,
				 .digest = digest,
				 .summary = said,
				 .effects = { effects, ELEMS(effects) },
				 .trace = { trace, ELEMS(trace) },
				 .risks = { risks, ELEMS(risks) },
				 .limits = { limits, ELEMS(limits) },
				 .error = said,
				 .reason = said,
				 .decided_by = said,
				 .approvers = 2,
				 .hash = digest,
				 .fee = amount,
				 .block = 7,
				 .deviation = said,
				 .attempts = { NULL, 0 } };
	struct config_chain chain = { .id = VIEW("eip155:1"), .name = said };
	struct config cfg = { .agents = { .chain_list = &chain, .n_chains = 1 } };
	struct core *c = calloc(1, sizeof(*c));
	const struct spend_view v = { .item = &item, .agent_name = name, .note = name, .stuck = true };

	assert_non_null(c);
	c->config = &cfg;
	card_text(out, c, &v);
	assert_false(out->bad);
	free(c);
}

static void test_nothing_leaves_its_line(void **state)
{
	static const int32_t kinds[] = { SGN_REQUEST_KIND_TX, SGN_REQUEST_KIND_MESSAGE,
					 SGN_REQUEST_KIND_TYPED };

	for (size_t i = 0; i < ELEMS(kinds); i++) {
		struct buf plain = BUF_INIT(1u << 20), evil = BUF_INIT(1u << 20);
		make(&plain, VIEW(PLAIN), PLAIN, kinds[i]);
		make(&evil, VIEW(EVIL), EVIL, kinds[i]);
		assert_harmless(buf_view(&evil));
		assert_true(count_lines(&plain) > 20);
		/* What is no text is shown as lines of 32 bytes in hexadecimal. */
		const unsigned more = kinds[i] == SGN_REQUEST_KIND_TX ? 0 : (sizeof(EVIL) - 1 + 31) / 32 - 1;
		assert_int_equal(count_lines(&plain) + more, count_lines(&evil));
		assert_null(memmem(evil.p, evil.n, "\nDigest 0x00", 12));
		assert_null(memmem(evil.p, evil.n, "\n  DANGER    none", 17));
		buf_done(&plain);
		buf_done(&evil);
	}
}

/* What is signed may be decided by its end. */
static void test_all_of_a_message_is_shown(void **state)
{
	struct buf text = BUF_INIT(1u << 20), said = BUF_INIT(1u << 20);

	for (int i = 0; i < 3000; i++)
		buf_puts(&said, "\xc3\xa4");
	buf_puts(&said, " and all that I own");
	make(&text, buf_view(&said), PLAIN, SGN_REQUEST_KIND_MESSAGE);
	assert_true(text_is_utf8(buf_view(&text)));
	assert_non_null(memmem(text.p, text.n, " and all that I own\"\n", 21));
	assert_null(memmem(text.p, text.n, "\xef\xbf\xbd", 3)); /* no character was cut */
	buf_done(&text);
	buf_done(&said);
}

/* The signer knows no symbols: the configuration does, and widely used chains have theirs. */
static void test_the_native_asset_has_a_name(void **state)
{
	static const struct {
		uint64_t chain;
		const char *text, *says;
	} texts[] = {
		{ 7, "send 0.5 (native) to x, 1 (native)", "send 0.5 TEN to x, 1 TEN" },
		{ 10, "send 0.5 (native)", "send 0.5 ETH" },
		{ 12, "send 0.5 (native)", "send 0.5 (native)" }, /* nobody has said what it is called */
		{ 7, " (native) and a (native)", " (native) and a (native)" },
		{ 7, "", "" },
	};
	static const uint8_t native[ADDRESS_SIZE] = { [0 ... ADDRESS_SIZE - 1] = 0xee };
	const struct view asset = { (const char *)native, ADDRESS_SIZE };
	struct config_chain chain = { .id = VIEW("eip155:7"), .symbol = VIEW("TEN") };
	struct config cfg = { .agents = { .chain_list = &chain, .n_chains = 1 } };
	struct core *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	c->config = &cfg;
	for (size_t i = 0; i < ELEMS(texts); i++) {
		struct buf out = BUF_INIT(1024);
		assert_true(view_is(spend_name_native(&out, c, texts[i].chain, view_of(texts[i].text)),
				    texts[i].says));
		buf_done(&out);
		struct buf small = BUF_INIT(2); /* then the text is as it was */
		assert_true(view_is(spend_name_native(&small, c, texts[i].chain, view_of(texts[i].text)),
				    texts[i].text));
		buf_done(&small);
	}
	assert_true(view_is(card_symbol(c, 7, asset, VIEW_NONE), "TEN"));
	assert_true(view_is(card_symbol(c, 7, VIEW("12345678901234567890"), VIEW("USDC")), "USDC"));
	assert_int_equal(card_symbol(c, 12, asset, VIEW_NONE).n, 0);
	free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_leaves_its_line),
		cmocka_unit_test(test_the_native_asset_has_a_name),
		cmocka_unit_test(test_all_of_a_message_is_shown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
