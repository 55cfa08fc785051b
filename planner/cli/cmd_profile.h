/* cmd_profile.h - the commands `hetplan profile ...`: measurements in another form, or
 * the shape of a model -> a ModelProfile object. */
#ifndef HET_CLI_CMD_PROFILE_H
#define HET_CLI_CMD_PROFILE_H

#include "planner/cli/options.h"

/* The object that `command` makes of its operand. A new reference. Errors: HET_BAD_INPUT
 * names the file and the field, or the option. */
int het_convert(enum het_command_bit command, const struct het_options *options,
                json_t **ret, struct het_error *err);

#endif
