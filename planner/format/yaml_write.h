/* yaml_write.h - JSON -> YAML, as people write manifests: mappings one member a line, the
 * entries of a list behind dashes; an entry that holds nothing but plain values is on one
 * line. Members keep their order. het_yaml_parse of the text gives the same JSON again,
 * and so does kubectl: every string that could be read as something else is quoted. */
#ifndef HET_FORMAT_YAML_WRITE_H
#define HET_FORMAT_YAML_WRITE_H

#include <jansson.h>

/* The text of an object, which ends with a newline. The caller frees it. */
char *het_yaml_text(const json_t *object);

#endif
