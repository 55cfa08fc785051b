#include "controller/simulate/client_link.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

struct line;

/* A piece of a body, or the end of a request. */
struct letter {
    TAILQ_ENTRY(letter) link;
    struct line *line;
    bool is_end;
    char *bytes;
    size_t length;
    struct http_reply reply; /* the end: its body is `bytes` */
};

/* A request of the client, until it has seen its end. */
struct line {
    TAILQ_ENTRY(line) link;
    struct wire *wire;
    uint64_t id; /* the shared transport's */
    struct http_handler handler;
};

TAILQ_HEAD(letters, letter);
TAILQ_HEAD(lines, line);

struct wire {
    struct transport transport; /* first: the client's view */
    struct transport *shared;
    struct letters letters; /* in the order of their coming */
    struct lines lines;
};

static struct wire *client_link_of(struct transport *transport)
{
    return (struct wire *)transport;
}

static struct letter *add_letter(struct line *line, const char *bytes, size_t length)
{
    struct letter *letter = xcalloc(1, sizeof *letter);
    letter->line = line;
    letter->bytes = xmalloc(length + 1);
    if (length)
        memcpy(letter->bytes, bytes, length);
    letter->bytes[length] = '\0';
    letter->length = length;
    TAILQ_INSERT_TAIL(&line->wire->letters, letter, link);
    return letter;
}

static void on_data(void *context, const char *bytes, size_t length)
{
    add_letter(context, bytes, length);
}

static void on_done(void *context, const struct http_reply *reply)
{
    struct letter *letter =
        add_letter(context, reply->body, reply->body ? reply->body_length : 0);
    letter->is_end = true;
    letter->reply = *reply;
    letter->reply.body = letter->bytes;
    letter->reply.body_length = letter->length;
}

static uint64_t start(struct transport *transport, const struct http_request *request,
                      const struct http_handler *handler)
{
    struct wire *wire = client_link_of(transport);
    struct line *line = xcalloc(1, sizeof *line);
    line->wire = wire;
    line->handler = *handler;
    const struct http_handler own = { .on_data = handler->on_data ? on_data : NULL,
                                      .on_done = on_done,
                                      .context = line };
    TAILQ_INSERT_TAIL(&wire->lines, line, link);
    line->id = transport_start(wire->shared, request, &own);
    return line->id;
}

static void drop_letter(struct wire *wire, struct letter *letter)
{
    TAILQ_REMOVE(&wire->letters, letter, link);
    free(letter->bytes);
    free(letter);
}

static void drop_line(struct line *line)
{
    struct wire *wire = line->wire;
    struct letter *next;
    for (struct letter *letter = TAILQ_FIRST(&wire->letters); letter; letter = next) {
        next = TAILQ_NEXT(letter, link);
        if (letter->line == line)
            drop_letter(wire, letter);
    }
    TAILQ_REMOVE(&wire->lines, line, link);
    free(line);
}

static void cancel(struct transport *transport, uint64_t id)
{
    struct wire *wire = client_link_of(transport);
    struct line *line;
    TAILQ_FOREACH(line, &wire->lines, link)
    if (line->id == id) {
        transport_cancel(wire->shared, id);
        drop_line(line);
        return;
    }
}

/* The line may be gone after its callback has run. */
static void deliver(struct wire *wire, struct letter *letter)
{
    struct line *line = letter->line;
    const struct http_handler handler = line->handler;
    TAILQ_REMOVE(&wire->letters, letter, link);
    if (letter->is_end) {
        drop_line(line);
        handler.on_done(handler.context, &letter->reply);
    } else {
        handler.on_data(handler.context, letter->bytes, letter->length);
    }
    free(letter->bytes);
    free(letter);
}

static int poll_wire(struct transport *transport, struct pollfd *extra,
                     size_t extra_count, int64_t timeout_ms)
{
    struct wire *wire = client_link_of(transport);
    int result = transport_poll(wire->shared, extra, extra_count, timeout_ms);
    while (!TAILQ_EMPTY(&wire->letters))
        deliver(wire, TAILQ_FIRST(&wire->letters));
    return result;
}

static void release(struct transport *transport)
{
    struct wire *wire = client_link_of(transport);
    while (!TAILQ_EMPTY(&wire->lines))
        cancel(transport, TAILQ_FIRST(&wire->lines)->id);
    free(wire);
}

struct transport *client_link_new(struct transport *shared)
{
    static const struct transport_ops ops = {
        .start = start, .cancel = cancel, .poll = poll_wire, .free = release
    };
    struct wire *wire = xcalloc(1, sizeof *wire);
    wire->transport.ops = &ops;
    wire->shared = shared;
    TAILQ_INIT(&wire->letters);
    TAILQ_INIT(&wire->lines);
    return &wire->transport;
}

bool client_link_has_mail(const struct transport *transport)
{
    const struct wire *wire = (const struct wire *)transport;
    return !TAILQ_EMPTY(&wire->letters);
}
