/* files.h - what tests read from tests/data; paths are from the root of the sources,
 * where the tests run. A missing or broken file ends the test. */
#ifndef TEST_FILES_H
#define TEST_FILES_H

#include <jansson.h>

/* A new reference. */
json_t *test_read_json(const char *path);
/* { NAME: CONTENT } of the *.json files right in the folder. A new reference. */
json_t *test_read_directory(const char *path);

#endif
