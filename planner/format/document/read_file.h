/* read_file.h - files of the command line -> JSON. Errors: HET_BAD_INPUT (or HET_IO, when
 * reading fails half-way) names the file, and the place in it. */
#ifndef HET_FORMAT_DOCUMENT_READ_FILE_H
#define HET_FORMAT_DOCUMENT_READ_FILE_H

#include "planner/base/error.h"

#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

/* All of `stream`, with a NUL behind it, in memory that the caller frees; at most
 * HET_MAX_JSON_BYTES. */
int het_read_file_stream(FILE *stream, const char *name, char **ret_text,
                         size_t *ret_length, struct het_error *err);

/* The same of a file; "-" is standard input. */
int het_read_file_text(const char *path, char **ret_text, size_t *ret_length,
                       struct het_error *err);

/* A JSON or YAML file: YAML if it is called *.yaml or *.yml or does not begin like a JSON
 * object or list. "-" is standard input. A new reference. */
int het_read_file(const char *path, json_t **ret, struct het_error *err);

/* A profile: such a file; a folder of Metis-format files as { "files": ... }
 * (profile/metis.h); or else a folder of Sailor's <TYPE>.json files as { "layerTimes":
 * ... } (profile/sailor.h), its llm_info.json left out. In the order of their names. A
 * new reference. */
int het_read_file_profile(const char *path, json_t **ret, struct het_error *err);

/* llm_info.json of a Sailor folder: in it, or in one of the two folders above. To be
 * freed by the caller; NULL if there is none. */
char *het_read_file_find_llm_info(const char *folder);
/* The last part of the folder's real path, to be freed; NULL if it cannot be resolved. */
char *het_read_file_folder_name(const char *folder);

/* A folder of <TYPE>.json files as { TYPE: CONTENT } ("layerTimes" of profile/metis.h).
 * A new reference. */
int het_read_file_layer_times(const char *path, json_t **ret, struct het_error *err);

/* Measured curves (network_json.h): a file, or those of a folder as a list, in the order
 * of their names. A new reference. */
int het_read_file_network(const char *path, json_t **ret, struct het_error *err);

/* A cluster or hardware file; where its "network" is the name of a file (or folder), from
 * the folder of `path` on, that file's content is put in its place. A new reference. */
int het_read_file_settings(const char *path, json_t **ret, struct het_error *err);

#endif
