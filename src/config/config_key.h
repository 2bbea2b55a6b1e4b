/*
 * Ed25519's public keys of catalogues, as the configuration names them and as the command line uses them.
 */
#pragma once

#include "err.h"
#include "view.h"

#define CONFIG_KEY      32
#define CONFIG_KEY_WEAK "the catalogue's key is one under which anybody can sign"

/* Under such a key anybody can sign: with OpenSSL a fixed signature fits every text, or every eighth. */
bool config_key_is_weak(const uint8_t key[CONFIG_KEY]) _must_check_;
/* Hexadecimal digits, and no weak one. ERR_INVALID. */
int config_key(struct view text, struct err *e) _must_check_;
