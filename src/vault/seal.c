/*
 * Sealing and opening: see seal.h.
 */
#include "seal.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "rnd.h"
#include "sha256.h"
#include "poison.h"

#define HEAD 44
static const char magic[8] = "PDKVLT1\n";

int seal_init(void)
{
	return OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, NULL) == 1 ? 0
												    : -EIO;
}

void seal_key_set(struct seal_key *k, const uint8_t bytes[SEAL_KEY])
{
	uint8_t hash[SHA256_SIZE];
	struct sha256 s;

	memcpy(k->bytes, bytes, SEAL_KEY);
	sha256_init(&s);
	sha256_add(&s, "paddock master key", 18);
	sha256_add(&s, bytes, SEAL_KEY);
	sha256_end(&s, hash);
	memcpy(k->id, hash, SEAL_KEY_ID);
	k->set = true;
	explicit_bzero(&s, sizeof(s));
}

void seal_key_wipe(struct seal_key *k)
{
	explicit_bzero(k, sizeof(*k));
}

static uint64_t get_le(const char *p, unsigned n)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < n; i++)
		v |= (uint64_t)(uint8_t)p[i] << 8 * i;
	return v;
}

static void put_le(char *p, uint64_t v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		p[i] = (char)(v >> 8 * i);
}

int seal_parse(struct view file, struct sealed *ret)
{
	struct sealed s;

	if (file.n < HEAD + SEAL_TAG || file.n > SEAL_FILE || memcmp(file.p, magic, sizeof(magic)) != 0 ||
	    (uint8_t)file.p[43] > 1)
		return -EBADMSG;
	size_t tenant = (uint8_t)file.p[40], box = (uint8_t)file.p[41], name = (uint8_t)file.p[42];
	size_t names = HEAD + tenant + box + name, notes = 0, head = names;
	if (tenant > SEAL_NAME || box > SEAL_NAME || name < 1 || name > SEAL_NAME)
		return -EBADMSG;
	if (file.p[43]) {
		if (names + 2 > file.n)
			return -EBADMSG;
		notes = get_le(file.p + names, 2);
		head = names + 2 + notes;
	}
	if (notes > SEAL_NOTES || (file.p[43] && !notes) || head + 1 + SEAL_TAG > file.n ||
	    file.n - head - SEAL_TAG > SEAL_VALUE)
		return -EBADMSG;
	s.key_id = (struct view){ file.p + 8, SEAL_KEY_ID };
	s.nonce = (struct view){ file.p + 16, SEAL_NONCE };
	s.label.version = (uint32_t)get_le(file.p + 28, 4);
	s.label.created_ms = (int64_t)get_le(file.p + 32, 8);
	s.label.tenant = (struct view){ file.p + HEAD, tenant };
	s.label.box = (struct view){ file.p + HEAD + tenant, box };
	s.label.name = (struct view){ file.p + HEAD + tenant + box, name };
	s.label.notes = notes ? (struct view){ file.p + names + 2, notes } : VIEW("");
	s.head = view_head(file, head);
	s.cipher = (struct view){ file.p + head, file.n - head - SEAL_TAG };
	s.tag = view_skip(file, file.n - SEAL_TAG);
	if (s.label.version == 0 || s.label.created_ms < 0)
		return -EBADMSG;
	*ret = s;
	return 0;
}

static int encrypt(const struct seal_key *k, struct view head, struct view value, uint8_t *cipher,
		   uint8_t *tag)
{
	EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
	int n, ok = c &&
		    EVP_EncryptInit_ex(c, EVP_aes_256_gcm(), NULL, k->bytes, (const uint8_t *)head.p + 16) ==
			    1 &&
		    EVP_EncryptUpdate(c, NULL, &n, (const uint8_t *)head.p, (int)head.n) == 1 &&
		    EVP_EncryptUpdate(c, cipher, &n, (const uint8_t *)value.p, (int)value.n) == 1 &&
		    EVP_EncryptFinal_ex(c, cipher + n, &n) == 1 &&
		    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_GET_TAG, SEAL_TAG, tag) == 1;

	EVP_CIPHER_CTX_free(c); /* wipes */
	return ok ? 0 : -EIO;
}

int seal_close(const struct seal_key *k, const struct seal_label *l, struct view value, struct buf *out)
{
	size_t head = HEAD + l->tenant.n + l->box.n + l->name.n + (l->notes.n ? 2 + l->notes.n : 0);

	if (!k->set || l->tenant.n > SEAL_NAME || l->box.n > SEAL_NAME || l->name.n < 1 ||
	    l->name.n > SEAL_NAME || l->version == 0 || l->created_ms < 0 || value.n < 1 ||
	    value.n > SEAL_VALUE || l->notes.n > SEAL_NOTES)
		return -EINVAL;
	char *p = buf_reserve(out, head + value.n + SEAL_TAG);
	if (!p)
		return out->bad;
	memcpy(p, magic, sizeof(magic));
	memcpy(p + 8, k->id, SEAL_KEY_ID);
	rnd_bytes(p + 16, SEAL_NONCE);
	put_le(p + 28, l->version, 4);
	put_le(p + 32, (uint64_t)l->created_ms, 8);
	p[40] = (char)l->tenant.n;
	p[41] = (char)l->box.n;
	p[42] = (char)l->name.n;
	p[43] = l->notes.n ? 1 : 0;
	char *at = p + HEAD;
	const struct view parts[] = { l->tenant, l->box, l->name };
	for (size_t i = 0; i < ELEMS(parts); i++) {
		if (parts[i].n)
			memcpy(at, parts[i].p, parts[i].n);
		at += parts[i].n;
	}
	if (l->notes.n) {
		put_le(at, l->notes.n, 2);
		memcpy(at + 2, l->notes.p, l->notes.n);
		at += 2 + l->notes.n;
	}
	int r = encrypt(k, (struct view){ p, head }, value, (uint8_t *)at, (uint8_t *)at + value.n);
	if (r == 0)
		buf_commit(out, head + value.n + SEAL_TAG);
	return r;
}

int seal_open(const struct seal_key *k, const struct sealed *s, struct buf *out)
{
	if (!k->set || memcmp(k->id, s->key_id.p, SEAL_KEY_ID) != 0)
		return -ENOKEY;
	uint8_t *p = (uint8_t *)buf_reserve(out, s->cipher.n), last[SEAL_TAG];
	EVP_CIPHER_CTX *c = p ? EVP_CIPHER_CTX_new() : NULL;
	int n, ok = c &&
		    EVP_DecryptInit_ex(c, EVP_aes_256_gcm(), NULL, k->bytes, (const uint8_t *)s->nonce.p) ==
			    1 &&
		    EVP_DecryptUpdate(c, NULL, &n, (const uint8_t *)s->head.p, (int)s->head.n) == 1 &&
		    EVP_DecryptUpdate(c, p, &n, (const uint8_t *)s->cipher.p, (int)s->cipher.n) == 1 &&
		    EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_GCM_SET_TAG, SEAL_TAG, (void *)s->tag.p) == 1 &&
		    EVP_DecryptFinal_ex(c, last, &n) == 1;

	EVP_CIPHER_CTX_free(c);
	if (!p)
		return out->bad;
	if (!ok) { /* what came out is nobody's value */
		explicit_bzero(p, s->cipher.n);
		return -EBADMSG;
	}
	buf_commit(out, s->cipher.n);
	return 0;
}
