#include "planner/system_call_filter.h"

#include <assert.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#define ARCHITECTURE 0 /* none: nothing is confined */
#endif

#if defined(__SANITIZE_ADDRESS__)
enum { IS_SANITIZED = true };
#else
enum { IS_SANITIZED = false };
#endif

/* A call that is allowed: always, or if `mask` of its argument is `value`. Only the lower
 * half of an argument is looked at: all that are asked about are ints. */
struct rule {
    uint32_t call;
    uint32_t argument, mask, value;
};

static const struct rule always[] = {
    { .call = __NR_read },
    { .call = __NR_write },
    { .call = __NR_writev },
    { .call = __NR_close },
    { .call = __NR_fstat },
    { .call = __NR_lseek },
    { .call = __NR_brk },
    { .call = __NR_mmap, 2, PROT_EXEC, 0 },
    { .call = __NR_mprotect, 2, PROT_EXEC, 0 },
    { .call = __NR_mremap },
    { .call = __NR_munmap },
    { .call = __NR_madvise },
    { .call = __NR_futex },
    { .call = __NR_getrandom },
    { .call = __NR_sysinfo }, /* qsort */
    { .call = __NR_clock_gettime },
    { .call = __NR_rt_sigaction },
    { .call = __NR_rt_sigprocmask },
    { .call = __NR_rt_sigreturn },
    { .call = __NR_restart_syscall },
    { .call = __NR_exit },
    { .call = __NR_exit_group },
};

/* What it takes to start a program, and of that program to get ready and to confine
 * itself further. */
static const struct rule start[] = {
    { .call = __NR_execve },
#if defined(__x86_64__)
    { .call = __NR_arch_prctl },
#endif
    { .call = __NR_set_tid_address },
    { .call = __NR_set_robust_list },
    { .call = __NR_rseq },
    { .call = __NR_prctl, 0, ~0u, PR_SET_NO_NEW_PRIVS },
    { .call = __NR_seccomp, 0, ~0u, SECCOMP_SET_MODE_FILTER },
};

struct filter {
    struct sock_filter *code;
    size_t length;
};

static void add(struct filter *filter, struct sock_filter instruction)
{
    assert(filter->length < HET_SYSTEM_CALL_FILTER_MAX);
    filter->code[filter->length++] = instruction;
}

static struct sock_filter load(size_t offset)
{
    return (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

/* The next `skipped` instructions are left out unless what is loaded is `value`. */
static struct sock_filter unless(uint32_t value, uint8_t skipped)
{
    return (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
}

static struct sock_filter answer(uint32_t action)
{
    return (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, action);
}

static const uint32_t refusal = SECCOMP_RET_ERRNO | EPERM;

/* The number of the call is loaded, and stays so for the next rule. */
static void add_rule(struct filter *filter, const struct rule *rule)
{
    if (!rule->mask) {
        add(filter, unless(rule->call, 1));
        add(filter, answer(SECCOMP_RET_ALLOW));
        return;
    }
    add(filter, unless(rule->call, 5));
    add(filter,
        load(offsetof(struct seccomp_data, args) + rule->argument * sizeof(uint64_t)));
    add(filter, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule->mask));
    add(filter, unless(rule->value, 1));
    add(filter, answer(SECCOMP_RET_ALLOW));
    add(filter, answer(refusal));
}

bool het_system_call_filter_is_possible(void)
{
    uint32_t action = SECCOMP_RET_ERRNO;
    return ARCHITECTURE && !IS_SANITIZED &&
           !syscall(__NR_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action);
}

size_t het_system_call_filter_build(bool may_start,
                                    struct sock_filter ret[HET_SYSTEM_CALL_FILTER_MAX])
{
    struct filter filter = { .code = ret };
    /* The numbers of calls are those of one architecture; a process may use two. */
    add(&filter, load(offsetof(struct seccomp_data, arch)));
    add(&filter,
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0));
    add(&filter, answer(SECCOMP_RET_KILL_PROCESS));
    add(&filter, load(offsetof(struct seccomp_data, nr)));
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        add_rule(&filter, &always[i]);
    for (size_t i = 0; may_start && i < sizeof start / sizeof *start; i++)
        add_rule(&filter, &start[i]);
    add(&filter, answer(refusal));
    return filter.length;
}

bool het_system_call_filter_enter(const struct sock_filter *filter, size_t length)
{
    const struct sock_fprog program = {
        .len = (unsigned short)length, .filter = (struct sock_filter *)(uintptr_t)filter
    };
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
           !syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}
