/*
 * Proxy tokens: made with Python's hmac, so that ours is checked against another's.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include "token.h"

#include "poison.h"

#define KEY VIEW("kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk")

/* exp 2000, a.test and *.b.test */
static const char good[] = "Basic "
			   "c2FuZGJveDpqd3RfZXlKaGJHY2lPaUFpU0ZNeU5UWWlMQ0FpZEhsd0lqb2dJa3BYVkNKOS5leUpwYzNNa"
			   "U9pQWljMkZ1WkdKdmVDMWxa"
			   "M0psYzNNdFkyOXVkSEp2YkNJc0lDSnpaWE56YVc5dVgybGtJam9nSW5NaUxDQWlkR1Z1WVc1MFgybGtJa"
			   "m9nSW5RaUxDQWlZV3hzYjNkbFpGOW"
			   "9iM04wY3lJNklDSmhMblJsYzNRc0lDb3VZaTUwWlhOMElpd2dJbVY0Y0NJNklESXdNREI5LlIwZmxlYmJ"
			   "vYWloTVo2c1VNWGZqYTNKV2ExYlhy"
			   "RFAzQmFEbzhzVmxfQXc=";
static const char listed[] = "Basic "
			     "c2FuZGJveDpqd3RfZXlKaGJHY2lPaUFpU0ZNeU5UWWlMQ0FpZEhsd0lqb2dJa3BYVkNKOS5leUpwYzN"
			     "NaU9pQWljMkZ1WkdKdmVDMWxa"
			     "M0psYzNNdFkyOXVkSEp2YkNJc0lDSnpaWE56YVc5dVgybGtJam9nSW5NaUxDQWlkR1Z1WVc1MFgybGt"
			     "Jam9nSW5RaUxDQWlZV3hzYjNkbFpGOW"
			     "9iM04wY3lJNklGc2lZUzUwWlhOMElpd2dJaW91WWk1MFpYTjBJbDBzSUNKbGVIQWlPaUF5TURBd0xqV"
			     "jkucDJHdGpxQ1ZEeUJYVllPWVlVTE9W"
			     "RkJ1YzhxZGY1ZkoyaE9RT2NENDkxQQ==";
static const char other_key[] = "Basic "
				"c2FuZGJveDpqd3RfZXlKaGJHY2lPaUFpU0ZNeU5UWWlMQ0FpZEhsd0lqb2dJa3BYVkNKOS5leUpw"
				"YzNNaU9pQWljMkZ1WkdKdmVDMWxa"
				"M0psYzNNdFkyOXVkSEp2YkNJc0lDSnpaWE56YVc5dVgybGtJam9nSW5NaUxDQWlkR1Z1WVc1MFgy"
				"bGtJam9nSW5RaUxDQWlZV3hzYjNkbFpGOW"
				"9iM04wY3lJNklDSmhMblJsYzNRc0lDb3VZaTUwWlhOMElpd2dJbVY0Y0NJNklESXdNREI5LjBycX"
				"NuMVJmYmxzc0xzNjAyczh6Qm85c2FsQ2Zs"
				"RUdxT3dwd1luNnRNLXc=";
static const char no_alg[] = "Basic "
			     "c2FuZGJveDpqd3RfZXlKaGJHY2lPaUFpYm05dVpTSXNJQ0owZVhBaU9pQWlTbGRVSW4wLmV5SnBjM01"
			     "pT2lBaWMyRnVaR0p2ZUMxbFoz"
			     "SmxjM010WTI5dWRISnZiQ0lzSUNKelpYTnphVzl1WDJsa0lqb2dJbk1pTENBaWRHVnVZVzUwWDJsa0l"
			     "qb2dJblFpTENBaVlXeHNiM2RsWkY5b2"
			     "IzTjBjeUk2SUNKaExuUmxjM1FzSUNvdVlpNTBaWE4wSWl3Z0ltVjRjQ0k2SURJd01EQjkuU2JjbEJvN"
			     "UxOYWxfV3FudWp2ejJvdTBORHZIaU04"
			     "SkJySm1fdU82VHhtQQ==";
static const char other_issuer[] =
	"Basic "
	"c2FuZGJveDpqd3RfZXlKaGJHY2lPaUFpU0ZNeU5UWWlMQ0FpZEhsd0lqb2dJa3BYVkNKOS5leUpwYzNNaU9pQWllQ0lzSUNKelpY"
	"Tnph"
	"Vzl1WDJsa0lqb2dJbk1pTENBaWRHVnVZVzUwWDJsa0lqb2dJblFpTENBaVlXeHNiM2RsWkY5b2IzTjBjeUk2SUNKaExuUmxjM1Fz"
	"SUNvdVlpNT"
	"BaWE4wSWl3Z0ltVjRjQ0k2SURJd01EQjkuZG9QR2VxOXRCTEJkaW45cjZ1SFc3U2Q4V3REclhDeGlqUjdwNlh6LXV2NA==";
static const char no_end[] = "Basic "
			     "c2FuZGJveDpqd3RfZXlKaGJHY2lPaUFpU0ZNeU5UWWlMQ0FpZEhsd0lqb2dJa3BYVkNKOS5leUpwYzN"
			     "NaU9pQWljMkZ1WkdKdmVDMWxa"
			     "M0psYzNNdFkyOXVkSEp2YkNJc0lDSnpaWE56YVc5dVgybGtJam9nSW5NaUxDQWlkR1Z1WVc1MFgybGt"
			     "Jam9nSW5RaUxDQWlZV3hzYjNkbFpGOW"
			     "9iM04wY3lJNklDSmhMblJsYzNRc0lDb3VZaTUwWlhOMEluMC43LVRudUJDRUE5T3dkMENmZHlZT0pZV"
			     "nJKcl90Mjg2RURpTWlqdG5zeVdz";
static const char other_user[] = "Basic "
				 "b3RoZXI6and0X2V5SmhiR2NpT2lBaVNGTXlOVFlpTENBaWRIbHdJam9nSWtwWFZDSjkuZXlKcGM"
				 "zTWlPaUFpYzJGdVpHSnZlQzFsWjNK"
				 "bGMzTXRZMjl1ZEhKdmJDSXNJQ0p6WlhOemFXOXVYMmxrSWpvZ0luTWlMQ0FpZEdWdVlXNTBYMmx"
				 "rSWpvZ0luUWlMQ0FpWVd4c2IzZGxaRjlvYj"
				 "NOMGN5STZJQ0poTG5SbGMzUXNJQ291WWk1MFpYTjBJaXdnSW1WNGNDSTZJREl3TURCOS5SMGZsZ"
				 "WJib2FpaE1aNnNVTVhmamEzSldhMWJYckRQ"
				 "M0JhRG84c1ZsX0F3";

/* "A.Test. , *.B.test" */
static const char upper[] = "Basic "
			    "c2FuZGJveDpqd3RfZXlKaGJHY2lPaUFpU0ZNeU5UWWlMQ0FpZEhsd0lqb2dJa3BYVkNKOS5leUpwYzNN"
			    "aU9pQWljMkZ1WkdKdmVDMWxaM0psYzNNdFkyOXVkSEp2YkNJc0lDSnpaWE56YVc5dVgybGtJam9nSW5N"
			    "aUxDQWlkR1Z1WVc1MFgybGtJam9nSW5RaUxDQWlZV3hzYjNkbFpGOW9iM04wY3lJNklDSkJMbFJsYzNR"
			    "dUlDd2dLaTVDTG5SbGMzUWlMQ0FpWlhod0lqb2dNakF3TUgwLjdUSGM0Vkdkb0liZW9aNUtYeWNfdTNT"
			    "WjdZZkNNV3pKTVNDTUd1anJ5UGs=";
/* "*" */
static const char every[] = "Basic "
			    "c2FuZGJveDpqd3RfZXlKaGJHY2lPaUFpU0ZNeU5UWWlMQ0FpZEhsd0lqb2dJa3BYVkNKOS5leUpwYzNN"
			    "aU9pQWljMkZ1WkdKdmVDMWxaM0psYzNNdFkyOXVkSEp2YkNJc0lDSnpaWE56YVc5dVgybGtJam9nSW5N"
			    "aUxDQWlkR1Z1WVc1MFgybGtJam9nSW5RaUxDQWlZV3hzYjNkbFpGOW9iM04wY3lJNklDSXFJaXdnSW1W"
			    "NGNDSTZJREl3TURCOS5nNGlaT3hVek52ZnF6TVdpVURGY2lQbjIzWjNPTFRjOVA1UHBJOTNzTUxV";

static bool allows(const char *token, const char *host, int64_t now)
{
	return token_allows(KEY, view_of(token), view_of(host), now);
}

static void holds(void **state)
{
	const char *const both[] = { good, listed };
	for (size_t i = 0; i < ELEMS(both); i++) {
		assert_true(allows(both[i], "a.test", 1999));
		assert_true(allows(both[i], "x.b.test", 1999));
		assert_true(allows(both[i], "b.test", 1999)); /* as agentbox has it */
		assert_false(allows(both[i], "c.test", 1999));
		assert_false(allows(both[i], "a.test.evil", 1999));
		assert_false(allows(both[i], "xb.test", 1999));
		assert_false(allows(both[i], "a.test", 2001));
	}
}

static void case_does_not_count(void **state)
{
	assert_true(allows(upper, "a.test", 1999));
	assert_true(allows(upper, "x.b.test", 1999));
	assert_true(allows(upper, "b.test", 1999));
	assert_false(allows(upper, "c.test", 1999));
	assert_false(allows(every, "a.test", 1999));
}

static void does_not_hold(void **state)
{
	const char *const bad[] = {
		other_key, no_alg,  other_issuer, no_end,     other_user,
		"",        "Basic", "Basic !!!",  "Bearer x", "Basic c2FuZGJveDpqd3RfYS5iLmM="
	};
	char changed[sizeof(good)];
	for (size_t i = 0; i < ELEMS(bad); i++)
		if (allows(bad[i], "a.test", 1))
			fail_msg("%s", bad[i]);
	assert_false(token_allows(VIEW_NONE, view_of(good), VIEW("a.test"), 1)); /* no key: none is good */
	/* Any change of a character breaks it (those of the base64 padding do not count). */
	for (size_t i = 6; i + 4 < sizeof(good) - 1; i++) {
		memcpy(changed, good, sizeof(good));
		changed[i] = changed[i] == 'A' ? 'B' : 'A';
		if (allows(changed, "a.test", 1))
			fail_msg("at %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(holds), cmocka_unit_test(case_does_not_count),
					    cmocka_unit_test(does_not_hold) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
