/*
 * Giving back what only the start needed: free heap, and the mapped pages of code
 * and constants that were used once (libcrypto's start alone touches megabytes in every program). What
 * is used again comes back from the page cache with a minor fault.
 */
#pragma once

void trim_start(void);
