/*
 * TLS on bytes in memory, a client against a server whose certificates are made for it:
 * what is chosen, what waits, and whose word is not taken.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define ERR_STATE openssl_err_state
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#undef ERR_STATE

#include "tls.h"
#include "poison.h"

static struct rig {
	struct tls_mint *mint;
	struct tls_client *client;
	EVP_PKEY *ca_key;
	X509 *ca;
	char file[32];
	/* of the server */
	bool waits;
	unsigned offers, hellos;
	enum tls_offer choice;
} rig;

static void extend(X509 *c, X509 *issuer, int kind, const char *value)
{
	X509V3_CTX ctx;

	X509V3_set_ctx(&ctx, issuer ? issuer : c, c, NULL, NULL, 0);
	X509_EXTENSION *x = X509V3_EXT_conf_nid(NULL, &ctx, kind, value);
	assert_non_null(x);
	assert_int_equal(X509_add_ext(c, x, -1), 1);
	X509_EXTENSION_free(x);
}

/* Signed with the one key. An authority names its own, a leaf that of its issuer. */
static X509 *make_cert(const char *name, EVP_PKEY *key, X509 *issuer)
{
	X509 *c = X509_new();
	X509_NAME *subject = X509_get_subject_name(c);
	char alternative[300];

	assert_int_equal(X509_set_version(c, 2), 1);
	ASN1_INTEGER_set(X509_get_serialNumber(c), issuer ? 2 : 1);
	X509_gmtime_adj(X509_getm_notBefore(c), -60);
	X509_gmtime_adj(X509_getm_notAfter(c), 3600);
	X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
	X509_set_issuer_name(c, issuer ? X509_get_subject_name(issuer) : subject);
	X509_set_pubkey(c, key);
	snprintf(alternative, sizeof(alternative), "DNS:%s", name);
	extend(c, issuer, issuer ? NID_subject_alt_name : NID_basic_constraints,
	       issuer ? alternative : "critical,CA:TRUE");
	extend(c, issuer, issuer ? NID_authority_key_identifier : NID_subject_key_identifier,
	       issuer ? "keyid" : "hash");
	assert_true(X509_sign(c, rig.ca_key, EVP_sha256()) > 0);
	return c;
}

static struct view der(X509 *c, unsigned char **p)
{
	int n = i2d_X509(c, p);

	assert_true(n > 0);
	return (struct view){ (const char *)*p, (size_t)n };
}

static void keep(const char *host, const char *made_for)
{
	struct view key = tls_mint_key(rig.mint);
	const unsigned char *p = (const unsigned char *)key.p;
	EVP_PKEY *pub = d2i_PUBKEY(NULL, &p, (long)key.n);
	unsigned char *leaf_der = NULL, *ca_der = NULL;

	assert_non_null(pub);
	X509 *leaf = make_cert(made_for, pub, rig.ca);
	assert_true(tls_mint_keep(rig.mint, host, der(leaf, &leaf_der), der(rig.ca, &ca_der)));
	OPENSSL_free(leaf_der);
	OPENSSL_free(ca_der);
	X509_free(leaf);
	EVP_PKEY_free(pub);
}

static int setup(void **state)
{
	struct err e = { 0 };

	rig = (struct rig){ .choice = TLS_OFFER_H2 };
	snprintf(rig.file, sizeof(rig.file), "/tmp/test_tls.XXXXXX");
	rig.mint = tls_mint_new(&e);
	rig.client = tls_client_new(&e);
	rig.ca_key = EVP_EC_gen("P-256");
	rig.ca = make_cert("An Authority", rig.ca_key, NULL);
	FILE *f = fdopen(mkstemp(rig.file), "w");
	assert_true(f && PEM_write_X509(f, rig.ca) == 1 && fclose(f) == 0);
	assert_int_equal(tls_client_trust(rig.client, rig.file, &e), 0);
	return 0;
}

static int teardown(void **state)
{
	unlink(rig.file);
	tls_mint_free(rig.mint);
	tls_client_free(rig.client);
	X509_free(rig.ca);
	EVP_PKEY_free(rig.ca_key);
	return 0;
}

static bool on_hello(void *arg, unsigned offers)
{
	struct rig *r = arg;

	r->hellos++;
	r->offers = offers;
	return !r->waits;
}

static enum tls_offer choose(void *arg)
{
	return ((struct rig *)arg)->choice;
}

static const struct tls_mint_ops ops = { .on_hello = on_hello, .choose = choose };

static void move(struct tls_conn *from, struct tls_conn *to)
{
	struct buf b = BUF_INIT(1u << 20);

	assert_int_equal(tls_conn_drain(from, &b), 0);
	assert_int_equal(tls_conn_feed(to, buf_view(&b)), 0);
	buf_done(&b);
}

/* Until neither goes on; what each said last. */
static void shake(struct tls_conn *c, struct tls_conn *s, int *ret_c, int *ret_s)
{
	*ret_c = *ret_s = -EAGAIN;
	for (int i = 0; i < 8; i++) {
		if (*ret_c == -EAGAIN)
			*ret_c = tls_conn_handshake(c);
		move(c, s);
		if (*ret_s == -EAGAIN)
			*ret_s = tls_conn_handshake(s);
		move(s, c);
	}
}

static void test_both_ways(void **state)
{
	char got[32];
	int rc, rs;

	keep("a.example", "a.example");
	assert_true(tls_mint_knows(rig.mint, "a.example"));
	struct tls_conn *s = tls_mint_conn(rig.mint, "a.example", &ops, &rig),
			*c = tls_client_conn(rig.client, -1, VIEW("a.example"));
	assert_true(s && c && tls_client_offer(c, true, true) == 0);
	shake(c, s, &rc, &rs);
	assert_int_equal(rc, 0);
	assert_int_equal(rs, 0);
	assert_int_equal(rig.offers, TLS_OFFER_ASKED | TLS_OFFER_H1 | TLS_OFFER_H2);
	assert_true(tls_conn_is_h2(c) && tls_conn_is_h2(s));
	assert_null(tls_conn_distrust(c));
	assert_int_equal(tls_conn_recv(s, got, sizeof(got)), -EAGAIN);
	assert_int_equal(tls_conn_send(c, "ping", 4), 4);
	move(c, s);
	assert_int_equal(tls_conn_recv(s, got, sizeof(got)), 4);
	assert_memory_equal(got, "ping", 4);
	assert_int_equal(tls_conn_notify(s), 0);
	move(s, c);
	assert_int_equal(tls_conn_recv(c, got, sizeof(got)), 0); /* a proper end */
	tls_conn_free(c);
	tls_conn_free(s);
}

static void test_waits_in_the_hello(void **state)
{
	int rc, rs;

	keep("a.example", "a.example");
	struct tls_conn *s = tls_mint_conn(rig.mint, "a.example", &ops, &rig),
			*c = tls_client_conn(rig.client, -1, VIEW("a.example"));
	assert_int_equal(tls_client_offer(c, false, true), 0);
	rig.waits = true;
	rig.choice = TLS_OFFER_H1;
	shake(c, s, &rc, &rs);
	assert_int_equal(rc, -EAGAIN);
	assert_int_equal(rs, -EAGAIN);
	assert_true(rig.hellos > 1);
	rig.waits = false;
	shake(c, s, &rc, &rs);
	assert_true(rc == 0 && rs == 0 && !tls_conn_is_h2(c));
	tls_conn_free(c);
	tls_conn_free(s);
}

static void test_another_host(void **state)
{
	int rc, rs;

	keep("a.example", "b.example");
	struct tls_conn *s = tls_mint_conn(rig.mint, "a.example", &ops, &rig),
			*c = tls_client_conn(rig.client, -1, VIEW("a.example"));
	shake(c, s, &rc, &rs);
	assert_int_equal(rc, -EPROTO);
	assert_non_null(tls_conn_distrust(c));
	assert_memory_equal(tls_conn_why(c), "the certificate is refused: ", 28);
	assert_int_equal(tls_conn_notify(c), 0); /* after a failure nothing is said */
	tls_conn_free(c);
	tls_conn_free(s);
}

static void test_nobody_is_believed(void **state)
{
	struct err e = { 0 };
	int rc, rs;

	keep("a.example", "a.example");
	struct tls_client *other = tls_client_new(&e);
	struct tls_conn *s = tls_mint_conn(rig.mint, "a.example", &ops, &rig),
			*c = tls_client_conn(other, -1, VIEW("a.example"));
	shake(c, s, &rc, &rs);
	assert_int_equal(rc, -EPROTO);
	assert_non_null(tls_conn_distrust(c));
	tls_conn_free(c);
	tls_conn_free(s);
	tls_client_free(other);
	assert_null(tls_client_load("/nonexistent.pem", &e));
	assert_int_equal(e.code, ERR_INVALID);
}

/* A file with these, the last one cut if it is to be broken. */
static void write_file(X509 *const *certs, size_t n, size_t repeat, bool broken)
{
	FILE *f = fopen(rig.file, "w");

	assert_non_null(f);
	for (size_t i = 0; i < n * repeat; i++)
		assert_int_equal(PEM_write_X509(f, certs[i % n]), 1);
	assert_int_equal(PEM_write_PrivateKey(f, rig.ca_key, NULL, NULL, 0, NULL, NULL), 1);
	if (broken)
		fputs("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", f);
	assert_int_equal(fclose(f), 0);
}

static int shake_with(struct tls_client *client)
{
	struct tls_conn *s = tls_mint_conn(rig.mint, "a.example", &ops, &rig),
			*c = tls_client_conn(client, -1, VIEW("a.example"));
	int rc, rs;

	shake(c, s, &rc, &rs);
	tls_conn_free(c);
	tls_conn_free(s);
	return rc;
}

/* Two have the same name and only one has signed: whichever comes first. */
static void test_authorities_of_one_name(void **state)
{
	struct err e = { 0 };
	EVP_PKEY *key = EVP_EC_gen("P-256");
	X509 *namesake = make_cert("An Authority", key, NULL), *stranger = make_cert("Another", key, NULL);
	X509 *const orders[][3] = { { namesake, stranger, rig.ca }, { rig.ca, namesake, stranger } };

	keep("a.example", "a.example");
	for (size_t i = 0; i < 2; i++) {
		write_file(orders[i], 3, 50, false);
		struct tls_client *client = tls_client_load(rig.file, &e);
		assert_non_null(client);
		for (int again = 0; again < 3; again++)
			assert_int_equal(shake_with(client), 0);
		tls_client_free(client);
	}
	write_file((X509 *[]){ namesake, stranger }, 2, 1, false);
	struct tls_client *client = tls_client_load(rig.file, &e);
	assert_non_null(client);
	assert_int_equal(shake_with(client), -EPROTO);
	tls_client_free(client);
	X509_free(namesake);
	X509_free(stranger);
	EVP_PKEY_free(key);
}

/* All of a file, or nothing of it. */
static void test_a_broken_file(void **state)
{
	struct err e = { 0 };

	keep("a.example", "a.example");
	write_file(&rig.ca, 1, 1, true);
	struct tls_client *client = tls_client_new(&e);
	assert_int_equal(tls_client_trust(client, rig.file, &e), -1);
	assert_int_equal(e.code, ERR_INVALID);
	assert_int_equal(shake_with(client), -EPROTO);
	tls_client_free(client);
	write_file(&rig.ca, 0, 0, false); /* a key alone */
	assert_null(tls_client_load(rig.file, &e));
}

static void test_no_certificate(void **state)
{
	assert_null(tls_mint_conn(rig.mint, "a.example", &ops, &rig));
	assert_false(tls_mint_keep(rig.mint, "a.example", VIEW("x"), VIEW("y")));
	assert_false(tls_mint_knows(rig.mint, "a.example"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_both_ways),      TEST(test_waits_in_the_hello),
		TEST(test_another_host),   TEST(test_nobody_is_believed),
		TEST(test_no_certificate), TEST(test_authorities_of_one_name),
		TEST(test_a_broken_file),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
