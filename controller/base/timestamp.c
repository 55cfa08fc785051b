#include "controller/base/timestamp.h"

#include <stdbool.h>
#include <stdio.h>

struct civil {
    int64_t year;
    int month, day;
};

/* Days since 1970-01-01 of a date of the proleptic Gregorian calendar, and back: the year
 * is taken to begin in March, so that the leap day comes last. */
static int64_t days_from_civil(struct civil date)
{
    int64_t year = date.month <= 2 ? date.year - 1 : date.year;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t month = date.month > 2 ? date.month - 3 : date.month + 9;
    int64_t day_of_year = (153 * month + 2) / 5 + date.day - 1;
    int64_t day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 +
                         day_of_year;
    return era * 146097 + day_of_era - 719468;
}

static struct civil civil_from_days(int64_t days)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era -
                          (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    struct civil date = {
        .year = year_of_era + era * 400,
        .month = (int)(month < 10 ? month + 3 : month - 9),
        .day = (int)(day_of_year - (153 * month + 2) / 5 + 1),
    };
    date.year += date.month <= 2;
    return date;
}

static int64_t floor_div(int64_t value, int64_t divisor)
{
    return value / divisor - (value % divisor < 0);
}

static void format(int64_t ms, bool with_fraction, char *ret_text)
{
    int64_t seconds = floor_div(ms, 1000);
    int64_t days = floor_div(seconds, 86400);
    int of_day = (int)(seconds - days * 86400);
    struct civil date = civil_from_days(days);
    char fraction[12] = "";
    if (with_fraction)
        snprintf(fraction, sizeof fraction, ".%03d000", (int)(ms - seconds * 1000));
    /* A year beyond four digits is not RFC 3339 and cannot come from a real clock. */
    snprintf(ret_text, TIMESTAMP_SIZE, "%04d-%02d-%02dT%02d:%02d:%02d%sZ",
             (int)(date.year % 10000), date.month, date.day, of_day / 3600,
             of_day / 60 % 60, of_day % 60, fraction);
}

void timestamp_format(int64_t ms, char ret_text[TIMESTAMP_SIZE])
{
    format(ms, false, ret_text);
}

void timestamp_format_micro(int64_t ms, char ret_text[TIMESTAMP_SIZE])
{
    format(ms, true, ret_text);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Reads exactly `count` digits at `*text` and goes past them; -1 if they are not there.
 */
static int digits(const char **text, int count)
{
    int value = 0;
    for (int i = 0; i < count; i++, (*text)++) {
        if (!is_digit(**text))
            return -1;
        value = value * 10 + (**text - '0');
    }
    return value;
}

static bool literal(const char **text, char expected)
{
    if (**text != expected)
        return false;
    (*text)++;
    return true;
}

static int fraction_ms(const char **text)
{
    int value = 0;
    int scale = 100;
    for (; is_digit(**text); (*text)++, scale /= 10)
        value += scale * (**text - '0');
    return value;
}

/* Minutes east of UTC at `*text`: "Z" or "+hh:mm". */
static bool offset_minutes(const char **text, int *ret_minutes)
{
    if (literal(text, 'Z')) {
        *ret_minutes = 0;
        return true;
    }
    int sign = **text == '-' ? -1 : 1;
    if (!literal(text, '+') && !literal(text, '-'))
        return false;
    int hours = digits(text, 2);
    if (hours < 0 || hours > 23 || !literal(text, ':'))
        return false;
    int minutes = digits(text, 2);
    if (minutes < 0 || minutes > 59)
        return false;
    *ret_minutes = sign * (hours * 60 + minutes);
    return true;
}

int timestamp_parse(const char *text, int64_t *ret_ms)
{
    static const struct {
        int digits, least, most;
        char after;
    } parts[] = { { 4, 0, 9999, '-' }, { 2, 1, 12, '-' }, { 2, 1, 31, 'T' },
                  { 2, 0, 23, ':' },   { 2, 0, 59, ':' }, { 2, 0, 60, '\0' } };
    int value[6];
    if (!text)
        return -1;
    for (int i = 0; i < 6; i++) {
        value[i] = digits(&text, parts[i].digits);
        if (value[i] < parts[i].least || value[i] > parts[i].most)
            return -1;
        if (parts[i].after && !literal(&text, parts[i].after))
            return -1;
    }
    int milliseconds = literal(&text, '.') ? fraction_ms(&text) : 0;
    int offset;
    if (!offset_minutes(&text, &offset) || *text)
        return -1;
    const struct civil date = { .year = value[0], .month = value[1], .day = value[2] };
    int64_t days = days_from_civil(date);
    int64_t minutes = days * 1440 + value[3] * 60 + value[4] - offset;
    int64_t ms = (minutes * 60 + value[5]) * 1000 + milliseconds;
    /* No 30 February; and in UTC, too, a year of four digits. */
    int64_t year = civil_from_days(floor_div(ms, 86400000)).year;
    if (civil_from_days(days).day != date.day || year < 0 || year > 9999)
        return -1;
    *ret_ms = ms;
    return 0;
}
