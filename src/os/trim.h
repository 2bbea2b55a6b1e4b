/*
 * Releases memory that only the start needed: free heap, and mapped pages of code and constants that
 * were used once (libcrypto's start alone touches megabytes in every program). Pages that are used
 * again come back from the page cache with a minor fault.
 */
#pragma once

void trim_start(void);
