/*
 * The database of NSS: a file of SQLite with the certificate and what it is trusted for.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <sqlite3.h>

#include "nssdb.h"

#include "poison.h"

static const char pem[] = "-----BEGIN CERTIFICATE-----\n"
			  "MIIBcDCCARegAwIBAgIUT57ytT9TwX3tXc92iNzCh7kr9ykwCgYIKoZIzj0EAwIw\n"
			  "DjEMMAoGA1UEAwwDeGNhMB4XDTI2MTExNTE0NDAxNFoXDTI2MTIxNTE0NDAxNFow\n"
			  "DjEMMAoGA1UEAwwDeGNhMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE8YRbfXV6\n"
			  "qN7E3+zXFc1LbS3xTSECdyMm5E0P8OYLYE98ZBIDwphSzDFOQba7Ii6pdrJp1yv6\n"
			  "drOqnYN5i5jIc6NTMFEwHQYDVR0OBBYEFC/FWCxPsCX0rW9IskJ47YFCKuXyMB8G\n"
			  "A1UdIwQYMBaAFC/FWCxPsCX0rW9IskJ47YFCKuXyMA8GA1UdEwEB/wQFMAMBAf8w\n"
			  "CgYIKoZIzj0EAwIDRwAwRAIgFOHndIiuc3c4n0AKhR+//zu75ke7baJKNWy92wX1\n"
			  "YsECIHjN2bkEKC4i6XYT1j3F6dI9ZmgjUZhzNx6C4FpdBGf6\n"
			  "-----END CERTIFICATE-----\n";

static int count(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	int n = sqlite3_column_int(s, 0);
	sqlite3_finalize(s);
	return n;
}

static void good(void **state)
{
	struct buf out = BUF_INIT(1u << 20);
	sqlite3 *db;

	assert_int_equal(nssdb_make(view_of(pem), &out), 0);
	assert_true(view_starts(buf_view(&out), "SQLite format 3"));
	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_deserialize(db, "main", (unsigned char *)out.p, (sqlite3_int64)out.n,
					     (sqlite3_int64)out.n, SQLITE_DESERIALIZE_READONLY),
			 SQLITE_OK);
	assert_int_equal(count(db, "SELECT count(*) FROM nssPublic"), 2);
	/* a CA for servers and for nothing else, found by the certificate's issuer and number */
	assert_int_equal(
		count(db,
		      "SELECT count(*) FROM nssPublic c JOIN nssPublic t ON c.a81 = t.a81 AND c.a82 = t.a82 "
		      "WHERE c.a0 = x'00000001' AND t.a0 = x'ce534353' AND t.ace536358 = x'ce534352' AND "
		      "t.ace536359 = x'ce534353' AND c.a101 = c.a81 AND length(c.a11) > 300"),
		1);
	sqlite3_close(db);
	buf_done(&out);
}

static void bad(void **state)
{
	static const char *const texts[] = {
		"", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
	};
	struct buf out = BUF_INIT(1u << 20);

	for (size_t i = 0; i < ELEMS(texts); i++)
		assert_int_not_equal(nssdb_make(view_of(texts[i]), &out), 0);
	assert_int_equal(buf_len(&out), 0);
	struct buf small = BUF_INIT(100);
	assert_int_not_equal(nssdb_make(view_of(pem), &small), 0);
	buf_done(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(good), cmocka_unit_test(bad) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
