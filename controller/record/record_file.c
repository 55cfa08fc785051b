#include "controller/record/record_file.h"

#include "controller/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct record_file {
    char *path, *old_path;
    int64_t max_bytes;
    bool with_env;
    int file; /* -1: could not be opened */
    int64_t size;
    bool is_failing;
};

/* -1 with errno. */
static int open_file(struct record_file *recorder)
{
    struct stat status;
    recorder->file =
        open(recorder->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (recorder->file < 0 || fstat(recorder->file, &status) < 0)
        return -1;
    recorder->size = status.st_size;
    return 0;
}

struct record_file *record_file_new(const char *path, int64_t max_bytes, bool with_env,
                                    struct het_error *err)
{
    struct record_file *recorder = xcalloc(1, sizeof *recorder);
    recorder->path = xstrdup(path);
    recorder->old_path = xasprintf("%s.1", path);
    recorder->max_bytes = max_bytes ? max_bytes : RECORD_FILE_MAX_BYTES;
    recorder->with_env = with_env;
    if (open_file(recorder) < 0) {
        het_fail(err, HET_IO, "--record %.300s: %s", path, strerror(errno));
        record_file_free(recorder);
        return NULL;
    }
    return recorder;
}

void record_file_free(struct record_file *recorder)
{
    if (!recorder)
        return;
    if (recorder->file >= 0)
        close(recorder->file);
    free(recorder->path);
    free(recorder->old_path);
    free(recorder);
}

/* The file is full: the next one. -1 with errno. */
static int rotate(struct record_file *recorder)
{
    if (rename(recorder->path, recorder->old_path) < 0)
        return -1;
    close(recorder->file);
    recorder->file = -1;
    return open_file(recorder);
}

/* -1 with errno; then the file ends with a whole line still, if that is possible. */
static int write_line(struct record_file *recorder, const char *line, size_t length)
{
    if (recorder->file < 0 && open_file(recorder) < 0)
        return -1;
    if (recorder->size && recorder->size + (int64_t)length > recorder->max_bytes &&
        rotate(recorder) < 0)
        return -1;
    if ((int64_t)length > recorder->max_bytes) {
        errno = EFBIG;
        return -1;
    }
    for (size_t done = 0; done < length;) {
        ssize_t count = write(recorder->file, line + done, length - done);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0) {
            int why = errno;
            if (done && ftruncate(recorder->file, recorder->size) < 0)
                recorder->size += (int64_t)done;
            errno = why;
            return -1;
        }
        done += (size_t)count;
    }
    recorder->size += (int64_t)length;
    return 0;
}

void record_file_add(void *context, const struct snapshot *snapshot,
                     const struct decision *decision)
{
    struct record_file *recorder = context;
    json_auto_t *record = record_write(snapshot, decision, recorder->with_env);
    auto_free char *text = json_dumps(record, JSON_COMPACT);
    size_t length = strlen(text);
    text[length] = '\n'; /* in place of the NUL: the length says where it ends */
    bool failed = write_line(recorder, text, length + 1) < 0;
    if (failed && !recorder->is_failing)
        log_event(LOG_ERROR, "recorder", "cannot write", LOG_STR("file", recorder->path),
                  LOG_STR("error", strerror(errno)));
    else if (!failed && recorder->is_failing)
        log_event(LOG_INFO, "recorder", "writes again", LOG_STR("file", recorder->path));
    recorder->is_failing = failed;
}
