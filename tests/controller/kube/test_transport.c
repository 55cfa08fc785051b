#include "controller/kube/transport.h"

#include <check.h>
#include <time.h>

static int poll_fails(struct transport *transport, struct pollfd *extra,
                      size_t extra_count, int64_t timeout_ms)
{
    (void)transport, (void)extra, (void)extra_count, (void)timeout_ms;
    return -1;
}

static int64_t clock_ms(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

START_TEST(transport_that_cannot_wait_does_not_spin)
{
    static const struct transport_ops ops = { .poll = poll_fails };
    struct transport transport = { &ops };
    int64_t from_ms = clock_ms(CLOCK_MONOTONIC),
            cpu_ms = clock_ms(CLOCK_PROCESS_CPUTIME_ID);
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(transport_poll(&transport, NULL, 0, 50), -1);
    ck_assert_int_ge(clock_ms(CLOCK_MONOTONIC) - from_ms, 5 * 49);
    ck_assert_int_le(clock_ms(CLOCK_PROCESS_CPUTIME_ID) - cpu_ms, 50);
    ck_assert_int_eq(transport_poll(&transport, NULL, 0, 0), -1); /* nobody waits */
}
END_TEST

Suite *test_transport_suite(void)
{
    Suite *suite = suite_create("transport");
    TCase *cases = tcase_create("transport");
    tcase_add_test(cases, transport_that_cannot_wait_does_not_spin);
    suite_add_tcase(suite, cases);
    return suite;
}
