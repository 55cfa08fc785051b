/* system_call_filter.h - confines a planner that reads a tenant's question. It may read
 * and write open files, get memory that is not executable, read the time, and end. A
 * filter of system calls (seccomp) refuses all else with EPERM: files, sockets, other
 * processes, signals to them. The filter cannot be removed, and execve keeps it.
 *
 * For x86-64 and aarch64. A program under AddressSanitizer needs more calls: neither it
 * nor what it starts is ever confined. */
#ifndef HET_SYSTEM_CALL_FILTER_H
#define HET_SYSTEM_CALL_FILTER_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether this system, and this build, can confine. */
bool het_system_call_filter_is_possible(void);

/* Instructions of a filter at most. */
#define HET_SYSTEM_CALL_FILTER_MAX ((size_t)256)

/* Fills `ret` with the filter and returns its length. With `may_start` a program may be
 * started under it, one that is linked statically: no file can be opened, so it gets no
 * library. */
size_t het_system_call_filter_build(bool may_start,
                                    struct sock_filter ret[HET_SYSTEM_CALL_FILTER_MAX]);
/* Puts the calling thread under `filter`, and keeps it and what it starts from gaining
 * rights (no_new_privs). Makes two system calls and nothing else, so that it can stand
 * between vfork and exec. False, with errno, if it cannot. */
bool het_system_call_filter_enter(const struct sock_filter *filter, size_t length);

#endif
