/*
 * Typed data: see typed.h. A document is read once; its struct types become a table, in which a type's
 * hash is counted when it is first needed.
 */
#include "typed.h"

#include <errno.h>
#include <stdlib.h>

#include "keccak.h"
#include "num.h"
#include "text.h"
#include "poison.h"

#define SIGNATURE_MAX (64u * 1024)
#define NAME_LEN      128

struct field {
	struct view name, type;
};

struct type {
	struct view name;
	struct field *fields;
	size_t n;
	bool hashed;
	uint8_t hash[KECCAK_SIZE];
};

struct doc {
	struct arena *arena;
	struct type types[TYPED_STRUCTS];
	size_t n;
	struct err *e;
};

/* ---- types ---- */

static bool is_identifier(struct view v)
{
	if (v.n == 0 || v.n > NAME_LEN)
		return false;
	for (size_t i = 0; i < v.n; i++) {
		const char c = v.p[i];
		const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
		if (!letter && (i == 0 || c < '0' || c > '9'))
			return false;
	}
	return true;
}

/* The size in bits or bytes at the end of a name: no leading zeros, so that there is one name for a type. */
static int sized(struct view type, const char *prefix, uint64_t *ret)
{
	const struct view digits = view_skip(type, strlen(prefix));

	return view_starts(type, prefix) && digits.n && digits.p[0] != '0' && num_u64(digits, ret) == 0
		       ? 0
		       : -EINVAL;
}

enum atom { ATOM_NONE, ATOM_BOOL, ATOM_ADDRESS, ATOM_STRING, ATOM_BYTES, ATOM_UINT, ATOM_INT, ATOM_FIXED };

static enum atom atom_of(struct view type, unsigned *ret_size)
{
	uint64_t n;

	*ret_size = 0;
	if (view_is(type, "bool"))
		return ATOM_BOOL;
	if (view_is(type, "address"))
		return ATOM_ADDRESS;
	if (view_is(type, "string"))
		return ATOM_STRING;
	if (view_is(type, "bytes"))
		return ATOM_BYTES;
	if (sized(type, "uint", &n) == 0 || sized(type, "int", &n) == 0) {
		*ret_size = (unsigned)n;
		return n > 256 || n % 8 ? ATOM_NONE : type.p[0] == 'u' ? ATOM_UINT : ATOM_INT;
	}
	if (sized(type, "bytes", &n) == 0 && n <= 32) {
		*ret_size = (unsigned)n;
		return ATOM_FIXED;
	}
	return ATOM_NONE;
}

/* Names that wallets read as types of the ABI, here or in a later version. */
static bool is_reserved(struct view name)
{
	static const char *const heads[] = { "uint", "int", "bytes" };
	unsigned size;

	for (size_t i = 0; i < ELEMS(heads); i++) {
		const struct view rest = view_skip(name, strlen(heads[i]));
		bool digits = view_starts(name, heads[i]);
		for (size_t k = 0; digits && k < rest.n; k++)
			digits = rest.p[k] >= '0' && rest.p[k] <= '9';
		if (digits)
			return true;
	}
	return atom_of(name, &size) != ATOM_NONE;
}

static struct type *find_type(struct doc *d, struct view name)
{
	for (size_t i = 0; i < d->n; i++)
		if (view_eq(d->types[i].name, name))
			return &d->types[i];
	return NULL;
}

/* T[] and T[4]: 1 with the item's type; *ret_n is SIZE_MAX for any length. */
static int array_of(struct view type, struct view *ret_item, size_t *ret_n)
{
	uint64_t n;

	if (type.n < 3 || type.p[type.n - 1] != ']')
		return 0;
	size_t at = type.n - 1;
	while (at > 0 && type.p[at] != '[')
		at--;
	const struct view count = { type.p + at + 1, type.n - at - 2 };
	*ret_item = view_head(type, at);
	*ret_n = SIZE_MAX;
	if (count.n == 0)
		return 1;
	if (count.p[0] == '0' || num_u64(count, &n) < 0 || n > TYPED_JSON_MAX)
		return -EINVAL;
	*ret_n = (size_t)n;
	return 1;
}

/* Without all its brackets. */
static int base_of(struct view type, struct view *ret)
{
	size_t n;
	int r;

	while ((r = array_of(type, &type, &n)) > 0)
		;
	*ret = type;
	return r;
}

static int read_fields(struct doc *d, struct type *t, const struct json *j)
{
	if (j->type != JSON_ARRAY || j->n > TYPED_FIELDS)
		return err_set(d->e, ERR_INVALID, "types.%.*s: not a list of at most %d members",
			       VIEW_ARG(t->name), TYPED_FIELDS);
	t->fields = arena_array(d->arena, j->n, sizeof(*t->fields));
	if (!t->fields)
		return err_set(d->e, ERR_TOO_LARGE, "typed data: too large");
	for (; t->n < j->n; t->n++) {
		const struct json *name = json_get(&j->items[t->n], "name"),
				  *type = json_get(&j->items[t->n], "type");
		if (!name || !type || j->items[t->n].n != 2 || name->type != JSON_STRING ||
		    type->type != JSON_STRING || !is_identifier(name->text))
			return err_set(d->e, ERR_INVALID, "types.%.*s: a member has a name and a type",
				       VIEW_ARG(t->name));
		for (size_t i = 0; i < t->n; i++)
			if (view_eq(t->fields[i].name, name->text))
				return err_set(d->e, ERR_INVALID, "types.%.*s: %.*s is there twice",
					       VIEW_ARG(t->name), VIEW_ARG(name->text));
		t->fields[t->n] = (struct field){ name->text, type->text };
	}
	return 0;
}

static int check_fields(struct doc *d, const struct type *t)
{
	struct view base;
	unsigned size;

	for (size_t i = 0; i < t->n; i++)
		if (t->fields[i].type.n > NAME_LEN || base_of(t->fields[i].type, &base) < 0 ||
		    (atom_of(base, &size) == ATOM_NONE && !find_type(d, base)))
			return err_set(d->e, ERR_INVALID, "types.%.*s.%.*s: not a type", VIEW_ARG(t->name),
				       VIEW_ARG(t->fields[i].name));
	return 0;
}

static int read_types(struct doc *d, const struct json *types)
{
	if (!types || types->type != JSON_OBJECT || types->n > TYPED_STRUCTS - 1)
		return err_set(d->e, ERR_INVALID, "types: not an object of at most %d types",
			       TYPED_STRUCTS - 1);
	for (size_t i = 0; i < types->n; i++) {
		struct type *t = &d->types[d->n];
		*t = (struct type){ .name = types->members[i].key };
		if (!is_identifier(t->name) || is_reserved(t->name))
			return err_set(d->e, ERR_INVALID, "types: %.*s is not a name for a type",
				       VIEW_ARG(view_head(t->name, 64)));
		if (read_fields(d, t, &types->members[i].value) < 0)
			return -1;
		d->n++;
	}
	for (size_t i = 0; i < d->n; i++)
		if (check_fields(d, &d->types[i]) < 0)
			return -1;
	return 0;
}

/* ---- the text of a type ---- */

static void collect(struct doc *d, struct type *t, const struct type **all, size_t *n)
{
	struct view base;

	for (size_t i = 0; i < *n; i++)
		if (all[i] == t)
			return;
	all[(*n)++] = t;
	for (size_t i = 0; i < t->n; i++) {
		(void)base_of(t->fields[i].type, &base);
		struct type *next = find_type(d, base);
		if (next)
			collect(d, next, all, n);
	}
}

static int by_name(const void *a, const void *b)
{
	const struct view x = (*(const struct type *const *)a)->name,
			  y = (*(const struct type *const *)b)->name;
	const int r = memcmp(x.p, y.p, MIN(x.n, y.n));

	return r ? r : x.n < y.n ? -1 : x.n > y.n;
}

static int put_signature(struct doc *d, struct type *t, struct buf *out)
{
	const struct type *all[TYPED_STRUCTS];
	size_t n = 0;

	collect(d, t, all, &n);
	qsort(all + 1, n - 1, sizeof(all[0]), by_name);
	for (size_t i = 0; i < n; i++) {
		buf_add(out, all[i]->name);
		for (size_t k = 0; k < all[i]->n; k++) {
			buf_putc(out, k ? ',' : '(');
			buf_add(out, all[i]->fields[k].type);
			buf_putc(out, ' ');
			buf_add(out, all[i]->fields[k].name);
		}
		buf_puts(out, all[i]->n ? ")" : "()");
	}
	return out->bad;
}

static int type_hash(struct doc *d, struct type *t)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT(SIGNATURE_MAX);

	if (t->hashed)
		return 0;
	if (put_signature(d, t, &text) < 0)
		return err_set(d->e, ERR_TOO_LARGE, "typed data: the types are too large");
	keccak_of(buf_view(&text), t->hash);
	t->hashed = true;
	return 0;
}

/* ---- values ---- */

static int refuse(struct doc *d, struct view where, struct view type)
{
	return err_set(d->e, ERR_INVALID, "%.*s: not a value of %.*s", VIEW_ARG(view_head(where, 64)),
		       VIEW_ARG(view_head(type, 64)));
}

int typed_uint(const struct json *j, struct u256 *ret)
{
	if (j->type == JSON_NUMBER) {
		int r = u256_parse(j->text, ret);
		return r < 0 ? r : u256_bits(ret) > 53 ? -ERANGE : 0;
	}
	if (j->type != JSON_STRING)
		return -EINVAL;
	return view_starts(j->text, "0x") ? u256_parse_hex(j->text, ret) : u256_parse(j->text, ret);
}

/* Two's complement: 2^256 - magnitude. */
static int negate(struct u256 *v)
{
	const struct u256 max = U256_MAX, one = u256_of(1);

	if (u256_is_zero(v))
		return -EINVAL; /* "-0" */
	int r = u256_sub(&max, v, v);
	return r < 0 ? r : u256_add(v, &one, v);
}

static int read_int(const struct json *j, unsigned bits, struct u256 *ret)
{
	const bool minus =
		j->text.n && j->text.p[0] == '-' && (j->type == JSON_NUMBER || j->type == JSON_STRING);
	struct json magnitude = *j;

	if (minus)
		magnitude.text = view_skip(j->text, 1);
	if (minus && view_starts(magnitude.text, "0x"))
		return -EINVAL;
	int r = typed_uint(&magnitude, ret);
	if (r < 0)
		return r;
	/* From -2^(bits-1) to 2^(bits-1) - 1. */
	struct u256 less = *ret;
	const struct u256 one = u256_of(1);
	if (minus && u256_sub(&less, &one, &less) < 0)
		return -EINVAL;
	if (u256_bits(&less) > bits - 1)
		return -ERANGE;
	return minus ? negate(ret) : 0;
}

/* "0x…" of whole bytes; `exact` of them, or any number (SIZE_MAX). */
static int read_hex(struct doc *d, const struct json *j, size_t exact, struct view *ret)
{
	if (j->type != JSON_STRING || !view_starts(j->text, "0x") || j->text.n % 2)
		return -EINVAL;
	const struct view digits = view_skip(j->text, 2);
	const size_t n = digits.n / 2;
	char *bytes = arena_alloc(d->arena, n + 1);
	if (!bytes || (exact != SIZE_MAX && n != exact))
		return -EINVAL;
	if (text_unhex(digits, bytes, n) < 0)
		return -EINVAL;
	*ret = (struct view){ bytes, n };
	return 0;
}

static int put_atom(struct doc *d, enum atom kind, unsigned size, const struct json *j, uint8_t word[32])
{
	struct u256 number;
	struct view bytes;

	memset(word, 0, 32);
	switch (kind) {
	case ATOM_BOOL:
		word[31] = j->boolean;
		return j->type == JSON_BOOL ? 0 : -EINVAL;
	case ATOM_ADDRESS:
		return j->type == JSON_STRING ? address_parse(j->text, word + 12) : -EINVAL;
	case ATOM_STRING:
		if (j->type != JSON_STRING)
			return -EINVAL;
		keccak_of(j->text, word);
		return 0;
	case ATOM_BYTES:
		if (read_hex(d, j, SIZE_MAX, &bytes) < 0)
			return -EINVAL;
		keccak_of(bytes, word);
		return 0;
	case ATOM_FIXED:
		if (read_hex(d, j, size, &bytes) < 0)
			return -EINVAL;
		memcpy(word, bytes.p, size);
		return 0;
	case ATOM_UINT:
		if (typed_uint(j, &number) < 0 || u256_bits(&number) > size)
			return -EINVAL;
		u256_store(&number, word);
		return 0;
	case ATOM_INT:
		if (read_int(j, size, &number) < 0)
			return -EINVAL;
		u256_store(&number, word);
		return 0;
	case ATOM_NONE:
		break;
	}
	return -EINVAL;
}

static int hash_struct(struct doc *d, struct type *t, const struct json *j, uint8_t ret[32]);

static int put_value(struct doc *d, struct view where, struct view type, const struct json *j,
		     uint8_t word[32])
{
	struct view item;
	size_t n;
	unsigned size;

	if (array_of(type, &item, &n) > 0) {
		struct keccak k;
		if (j->type != JSON_ARRAY || (n != SIZE_MAX && j->n != n))
			return refuse(d, where, type);
		keccak_init(&k);
		for (size_t i = 0; i < j->n; i++) {
			if (put_value(d, where, item, &j->items[i], word) < 0)
				return -1;
			keccak_add(&k, word, 32);
		}
		keccak_end(&k, word);
		return 0;
	}
	struct type *sub = find_type(d, type);
	if (sub)
		return j->type == JSON_OBJECT ? hash_struct(d, sub, j, word) : refuse(d, where, type);
	const enum atom kind = atom_of(type, &size);
	return put_atom(d, kind, size, j, word) < 0 ? refuse(d, where, type) : 0;
}

static int hash_struct(struct doc *d, struct type *t, const struct json *j, uint8_t ret[32])
{
	struct keccak k;
	uint8_t word[32];

	if (type_hash(d, t) < 0)
		return -1;
	if (j->n != t->n)
		return err_set(d->e, ERR_INVALID, "%.*s: has other members than its type", VIEW_ARG(t->name));
	keccak_init(&k);
	keccak_add(&k, t->hash, sizeof(t->hash));
	for (size_t i = 0; i < t->n; i++) {
		const struct json *value = NULL;
		for (size_t m = 0; m < j->n && !value; m++)
			if (view_eq(j->members[m].key, t->fields[i].name))
				value = &j->members[m].value;
		if (!value)
			return err_set(d->e, ERR_INVALID, "%.*s.%.*s is missing", VIEW_ARG(t->name),
				       VIEW_ARG(t->fields[i].name));
		if (put_value(d, t->fields[i].name, t->fields[i].type, value, word) < 0)
			return -1;
		keccak_add(&k, word, sizeof(word));
	}
	keccak_end(&k, ret);
	return 0;
}

/* ---- the document ---- */

static const struct field domain_fields[] = {
	{ VIEW("name"), VIEW("string") },     { VIEW("version"), VIEW("string") },
	{ VIEW("chainId"), VIEW("uint256") }, { VIEW("verifyingContract"), VIEW("address") },
	{ VIEW("salt"), VIEW("bytes32") },
};

/* The domain's type: its members in the order of the standard. One in the document must be that. */
static struct type *domain_type(struct doc *d, const struct json *domain)
{
	static const struct view name = VIEW("EIP712Domain");
	struct field fields[ELEMS(domain_fields)];
	struct type *t = find_type(d, name);
	size_t n = 0;

	for (size_t i = 0; i < ELEMS(domain_fields); i++)
		for (size_t m = 0; m < domain->n; m++)
			if (view_eq(domain->members[m].key, domain_fields[i].name))
				fields[n++] = domain_fields[i];
	bool same = n == domain->n && (!t || t->n == n);
	for (size_t i = 0; same && t && i < n; i++)
		same = view_eq(t->fields[i].name, fields[i].name) &&
		       view_eq(t->fields[i].type, fields[i].type);
	if (!same) {
		err_set(d->e, ERR_INVALID, "domain: its members are not those of its type");
		return NULL;
	}
	if (t)
		return t;
	t = &d->types[d->n++];
	*t = (struct type){ .name = name, .n = n, .fields = arena_array(d->arena, n + 1, sizeof(*fields)) };
	if (!t->fields) {
		err_set(d->e, ERR_TOO_LARGE, "typed data: too large");
		return NULL;
	}
	memcpy(t->fields, fields, n * sizeof(*fields));
	return t;
}

static int read_domain(struct doc *d, struct typed *t)
{
	const struct json *chain = json_get(t->domain, "chainId"),
			  *contract = json_get(t->domain, "verifyingContract"),
			  *name = json_get(t->domain, "name");
	struct type *type = domain_type(d, t->domain);
	struct u256 number;

	if (!type || hash_struct(d, type, t->domain, t->domain_hash) < 0)
		return -1;
	t->name = name ? name->text : VIEW("");
	t->has_chain = chain && typed_uint(chain, &number) == 0;
	if (t->has_chain && (!u256_fits_u64(&number)))
		return err_set(d->e, ERR_INVALID, "domain.chainId: no chain has this number");
	t->chain = t->has_chain ? number.w[0] : 0;
	t->has_contract = contract && address_parse(contract->text, t->contract) == 0;
	return 0;
}

static void count_digest(struct typed *t)
{
	struct keccak k;

	keccak_init(&k);
	keccak_add(&k, "\x19\x01", 2);
	keccak_add(&k, t->domain_hash, sizeof(t->domain_hash));
	keccak_add(&k, t->struct_hash, sizeof(t->struct_hash));
	keccak_end(&k, t->digest);
}

static int read_message(struct doc *d, struct typed *t)
{
	_cleanup_(buf_done) struct buf signature = BUF_INIT(SIGNATURE_MAX);
	struct type *type = find_type(d, t->primary);

	/* Some wallets sign the domain alone then, others its hash twice. */
	if (!type || view_is(t->primary, "EIP712Domain"))
		return err_set(d->e, ERR_INVALID, "primaryType: not one of the types of a message");
	if (hash_struct(d, type, t->message, t->struct_hash) < 0)
		return -1;
	if (put_signature(d, type, &signature) < 0)
		return err_set(d->e, ERR_TOO_LARGE, "typed data: the types are too large");
	t->signature = arena_view(d->arena, buf_view(&signature));
	return t->signature.p ? 0 : err_set(d->e, ERR_TOO_LARGE, "typed data: too large");
}

int typed_parse(struct arena *a, struct view text, struct typed *ret, struct err *e)
{
	struct json *j;
	struct typed t = { 0 };

	if (text.n > TYPED_JSON_MAX)
		return err_set(e, ERR_TOO_LARGE, "typed data: more than %u bytes", TYPED_JSON_MAX);
	if (json_parse(a, text, &j, e) < 0)
		return -1;
	struct doc *d = arena_alloc(a, sizeof(*d));
	if (!d)
		return err_set(e, ERR_TOO_LARGE, "typed data: too large");
	d->arena = a;
	d->e = e;
	const struct json *primary = json_get(j, "primaryType");
	t.domain = json_get(j, "domain");
	t.message = json_get(j, "message");
	if (j->type != JSON_OBJECT || j->n != 4 || !primary || primary->type != JSON_STRING || !t.domain ||
	    t.domain->type != JSON_OBJECT || !t.message || t.message->type != JSON_OBJECT)
		return err_set(e, ERR_INVALID, "typed data has types, primaryType, domain and message");
	t.primary = primary->text;
	if (read_types(d, json_get(j, "types")) < 0 || read_domain(d, &t) < 0 || read_message(d, &t) < 0)
		return -1;
	count_digest(&t);
	*ret = t;
	return 0;
}
