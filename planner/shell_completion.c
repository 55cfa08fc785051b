#include "planner/shell_completion.h"

#include <string.h>

/* PROGRAM is the program's name, FUNCTION what a function is called by it. */
static const char bash_script[] =
    "# bash completion of PROGRAM: source <(PROGRAM completion bash)\n"
    "_FUNCTION() {\n"
    "    local line directive=4\n"
    "    COMPREPLY=()\n"
    "    while IFS= read -r line; do\n"
    "        case $line in\n"
    "        :*) directive=${line#:} ;;\n"
    "        *) COMPREPLY+=(\"${line%%$'\\t'*}\") ;;\n"
    "        esac\n"
    "    done < <(PROGRAM __complete \"${COMP_WORDS[@]:1:COMP_CWORD}\" 2>/dev/null)\n"
    "    if [ \"$directive\" = 0 ]; then\n"
    "        while IFS= read -r line; do\n"
    "            COMPREPLY+=(\"$line\")\n"
    "        done < <(compgen -f -- \"${COMP_WORDS[COMP_CWORD]}\")\n"
    "    fi\n"
    "}\n"
    "complete -F _FUNCTION PROGRAM\n";

static const char zsh_script[] =
    "#compdef PROGRAM\n"
    "# zsh completion of PROGRAM: source <(PROGRAM completion zsh)\n"
    "_FUNCTION() {\n"
    "    local line directive=4\n"
    "    local -a choices\n"
    "    for line in \"${(@f)$(PROGRAM __complete \"${(@)words[2,CURRENT]}\" "
    "2>/dev/null)}\"; do\n"
    "        case $line in\n"
    "        :*) directive=${line#:} ;;\n"
    "        *) choices+=(\"${line%%$'\\t'*}:${line#*$'\\t'}\") ;;\n"
    "        esac\n"
    "    done\n"
    "    (( ${#choices} )) && _describe PROGRAM choices\n"
    "    [[ $directive != 0 ]] || _files\n"
    "}\n"
    "compdef _FUNCTION PROGRAM\n";

static const char fish_script[] =
    "# fish completion of PROGRAM: PROGRAM completion fish | source\n"
    "function __FUNCTION\n"
    "    set -l words (commandline -opc)\n"
    "    set -e words[1]\n"
    "    set -l current (commandline -ct)\n"
    "    set -l lines (PROGRAM __complete $words \"$current\" 2>/dev/null)\n"
    "    for line in $lines\n"
    "        if test \"$line\" = :0\n"
    "            __fish_complete_path \"$current\"\n"
    "        else if not string match -q ':*' -- $line\n"
    "            echo $line\n"
    "        end\n"
    "    end\n"
    "end\n"
    "complete -c PROGRAM -f -a '(__FUNCTION)'\n";

const char *const het_shells[] = { "bash", "zsh", "fish", NULL };
static const char *const scripts[] = { bash_script, zsh_script, fish_script };

/* The program's name, with no characters that a function's name may not have. */
static void put_function(const char *program, FILE *out)
{
    for (; *program; program++)
        putc(*program == '-' ? '_' : *program, out);
}

static void put_script(const char *script, const char *program, FILE *out)
{
    static const char name[] = "PROGRAM", function[] = "FUNCTION";
    while (*script) {
        if (!strncmp(script, name, strlen(name))) {
            fputs(program, out);
            script += strlen(name);
        } else if (!strncmp(script, function, strlen(function))) {
            put_function(program, out);
            script += strlen(function);
        } else {
            putc(*script++, out);
        }
    }
}

int het_shell_completion(const char *shell, const char *program, FILE *out,
                         struct het_error *err)
{
    for (size_t i = 0; het_shells[i]; i++)
        if (!strcmp(het_shells[i], shell)) {
            put_script(scripts[i], program, out);
            return 0;
        }
    return het_fail(err, HET_BAD_INPUT, "no completion for \"%.60s\": bash, zsh or fish",
                    shell);
}
