/*
 * Chains and their nodes, as far as others see them.
 */
#pragma once

#define CHAIN_ID_MAX 41 /* "eip155:" and 32 digits, with room */

/* Of a chain's nodes: UNKNOWN until one was needed. */
enum spend_health { SPEND_UNKNOWN, SPEND_OK, SPEND_DOWN, SPEND_WRONG_ID };
