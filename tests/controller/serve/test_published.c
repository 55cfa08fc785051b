#include "controller/serve/published.h"

#include "planner/modules.h"

#include <check.h>
#include <pthread.h>
#include <string.h>

static struct published *feed;

static void set_up(void)
{
    feed = published_new();
}

static void tear_down(void)
{
    published_free(feed);
}

static void publish(const char *name, const char *text)
{
    published_publish(feed, name, xstrdup(text), strlen(text));
}

START_TEST(text_is_there_once_it_is_published)
{
    ck_assert_ptr_null(published_take(feed, "overview"));
    ck_assert_uint_eq(published_version(feed, "overview"), 0);
    publish("overview", "one");
    const struct published_text *text = published_take(feed, "overview");
    ck_assert_mem_eq(text->bytes, "one", text->length);
    ck_assert_uint_eq(text->version, 1);
    published_give_back(feed, text);
}
END_TEST

START_TEST(held_version_outlives_the_next)
{
    publish("overview", "one");
    const struct published_text *held = published_take(feed, "overview");
    publish("overview", "another");
    const struct published_text *newest = published_take(feed, "overview");
    ck_assert_mem_eq(held->bytes, "one", 3);
    ck_assert_mem_eq(newest->bytes, "another", 7);
    ck_assert_uint_eq(newest->version, 2);
    published_give_back(feed, held);
    published_give_back(feed, newest);
}
END_TEST

START_TEST(names_are_apart)
{
    publish("a", "1");
    publish("b", "2");
    publish("b", "3");
    ck_assert_uint_eq(published_version(feed, "a"), 1);
    ck_assert_uint_eq(published_version(feed, "b"), 2);
}
END_TEST

static void on_publish(void *context)
{
    ++*(int *)context;
}

START_TEST(who_waits_is_told_of_each_version)
{
    int told = 0;
    published_on_publish(feed, on_publish, &told);
    publish("a", "1");
    publish("b", "2");
    ck_assert_int_eq(told, 2);
    published_on_publish(feed, NULL, NULL);
    publish("b", "3");
    ck_assert_int_eq(told, 2);
}
END_TEST

START_TEST(listeners_are_counted_by_name)
{
    published_add_listeners(feed, "a", 2);
    published_add_listeners(feed, "a", -1);
    ck_assert_int_eq(published_listeners(feed, "a"), 1);
    ck_assert_int_eq(published_listeners(feed, "b"), 0);
}
END_TEST

START_TEST(loop_that_never_turned_has_no_beat)
{
    ck_assert_int_eq(published_last_beat_ms(feed), INT64_MIN);
    ck_assert(!published_is_ready(feed));
    published_beat(feed, 17);
    published_set_ready(feed, true);
    ck_assert_int_eq(published_last_beat_ms(feed), 17);
    ck_assert(published_is_ready(feed));
}
END_TEST

/* Each version is one character, as often as it is long. */
static void *read_versions(void *context)
{
    (void)context;
    for (int i = 0; i < 20000; i++) {
        const struct published_text *text = published_take(feed, "overview");
        for (size_t k = 0; text && k < text->length; k++)
            if (text->bytes[k] != text->bytes[0])
                return "torn";
        published_give_back(feed, text);
    }
    return NULL;
}

START_TEST(reader_sees_whole_versions_while_others_come)
{
    pthread_t threads[2];
    void *torn;
    for (int i = 0; i < 2; i++)
        ck_assert(!pthread_create(&threads[i], NULL, read_versions, NULL));
    for (int i = 0; i < 20000; i++) {
        char *bytes = xmalloc(100);
        memset(bytes, 'a' + i % 26, 100);
        published_publish(feed, "overview", bytes, 100);
    }
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], &torn);
        ck_assert_ptr_null(torn);
    }
    ck_assert_uint_eq(published_version(feed, "overview"), 20000);
}
END_TEST

Suite *test_published_suite(void)
{
    Suite *suite = suite_create("published");
    TCase *cases = tcase_create("feed");
    tcase_add_checked_fixture(cases, set_up, tear_down);
    tcase_add_test(cases, text_is_there_once_it_is_published);
    tcase_add_test(cases, held_version_outlives_the_next);
    tcase_add_test(cases, names_are_apart);
    tcase_add_test(cases, who_waits_is_told_of_each_version);
    tcase_add_test(cases, listeners_are_counted_by_name);
    tcase_add_test(cases, loop_that_never_turned_has_no_beat);
    tcase_add_test(cases, reader_sees_whole_versions_while_others_come);
    suite_add_tcase(suite, cases);
    return suite;
}
