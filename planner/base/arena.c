#include "planner/base/arena.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_OUT_OF_MEMORY 70
#define FIRST_BLOCK_BYTES  4096
#define LARGEST_BLOCK_STEP ((size_t)1 << 20)

/* ---- memory that ends the process, or a scope, when it is out ---- */

/* Stands before what is allocated within a scope, which so finds all that is left. */
struct allocation {
    alignas(max_align_t) struct allocation *next;
    struct allocation **here; /* the pointer to this one */
};

struct memory_scope {
    struct allocation *first;
    jmp_buf end;
};

static _Thread_local struct memory_scope *scope; /* NULL: none */

static _Noreturn void die_of_memory(void)
{
    static const char message[] = "out of memory\n";
    if (scope)
        longjmp(scope->end, 1);
    fwrite(message, 1, sizeof message - 1, stderr);
    _Exit(EXIT_OUT_OF_MEMORY);
}

static void scope_insert(struct allocation *allocation)
{
    allocation->next = scope->first;
    allocation->here = &scope->first;
    if (allocation->next)
        allocation->next->here = &allocation->next;
    scope->first = allocation;
}

static void scope_remove(struct allocation *allocation)
{
    *allocation->here = allocation->next;
    if (allocation->next)
        allocation->next->here = allocation->here;
}

static struct allocation *allocation_of(void *memory)
{
    return (struct allocation *)memory - 1;
}

int het_memory_scope(void (*run)(void *context), void *context)
{
    struct memory_scope *const outer = scope;
    struct memory_scope own = { 0 };
    scope = &own;
    int failed = setjmp(own.end);
    if (!failed)
        run(context);
    while (own.first) {
        struct allocation *next = own.first->next;
        free(own.first);
        own.first = next;
    }
    scope = outer;
    return failed ? -1 : 0;
}

struct memory_scope *het_memory_scope_leave(void)
{
    struct memory_scope *left = scope;
    scope = NULL;
    return left;
}

void het_memory_scope_enter(struct memory_scope *left)
{
    scope = left;
}

static size_t checked_product(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        die_of_memory();
    return bytes;
}

static void *checked(struct allocation *allocation)
{
    if (!allocation)
        die_of_memory();
    if (!scope)
        return allocation;
    scope_insert(allocation);
    return allocation + 1;
}

/* `size` bytes, and what a scope needs before them; never 0. */
static size_t whole_size(size_t size)
{
    size_t whole;
    if (__builtin_add_overflow(size, scope ? sizeof(struct allocation) : !size, &whole))
        die_of_memory();
    return whole;
}

void *xmalloc(size_t size)
{
    return checked(malloc(whole_size(size)));
}

void *xcalloc(size_t count, size_t size)
{
    return checked(calloc(1, whole_size(checked_product(count, size))));
}

void *xrealloc(void *old, size_t size)
{
    struct allocation *before = scope && old ? allocation_of(old) : old;
    size_t whole = whole_size(size);
    if (scope && before)
        scope_remove(before);
    struct allocation *after = realloc(before, whole);
    if (!after && scope && before)
        scope_insert(before);
    return checked(after);
}

void *xreallocarray(void *old, size_t count, size_t size)
{
    return xrealloc(old, checked_product(count, size));
}

void xfree(void *memory)
{
    struct allocation *allocation = memory;
    if (scope && memory) {
        allocation = allocation_of(memory);
        scope_remove(allocation);
    }
    free(allocation);
}

char *xstrdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(xmalloc(size), text, size);
}

char *xasprintf(const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        die_of_memory();
    char *text = xmalloc((size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

void het_free_pointer(void *pointer_to_pointer)
{
    void *memory;
    memcpy(&memory, pointer_to_pointer, sizeof memory);
    xfree(memory);
}

void *het_array_reserve(void *array, size_t *capacity, size_t needed, size_t element)
{
    if (needed <= *capacity)
        return array;
    size_t larger = *capacity ? *capacity : 8;
    while (larger < needed)
        larger = checked_product(larger, 2);
    *capacity = larger;
    return xreallocarray(array, larger, element);
}

/* A block is this header followed by `size` bytes, of which `used` are handed out. */
struct block {
    struct block *previous;
    size_t size, used;
    alignas(max_align_t) unsigned char bytes[];
};

struct het_arena {
    struct block *last;
    size_t total_bytes;
};

struct het_arena *het_arena_new(void)
{
    return xcalloc(1, sizeof(struct het_arena));
}

void het_arena_free(struct het_arena *arena)
{
    if (!arena)
        return;
    for (struct block *block = arena->last; block;) {
        struct block *previous = block->previous;
        xfree(block);
        block = previous;
    }
    xfree(arena);
}

static struct block *add_block(struct het_arena *arena, size_t needed)
{
    size_t size = FIRST_BLOCK_BYTES;
    if (arena->last)
        size = arena->last->size < LARGEST_BLOCK_STEP ? arena->last->size * 2
                                                      : LARGEST_BLOCK_STEP;
    if (size < needed)
        size = needed;
    if (size > SIZE_MAX - sizeof(struct block))
        die_of_memory();
    struct block *block = xcalloc(1, sizeof(struct block) + size);
    block->size = size;
    block->previous = arena->last;
    arena->last = block;
    arena->total_bytes += sizeof(struct block) + size;
    return block;
}

void *het_arena_alloc(struct het_arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX - align)
        die_of_memory();
    size = (size + align - 1) / align * align;
    struct block *block = arena->last;
    if (!block || block->size - block->used < size)
        block = add_block(arena, size);
    void *memory = block->bytes + block->used;
    block->used += size;
    return memory;
}

void *het_arena_array(struct het_arena *arena, size_t count, size_t element)
{
    return het_arena_alloc(arena, checked_product(count, element));
}

char *het_arena_strdup(struct het_arena *arena, const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(het_arena_alloc(arena, size), text, size);
}

char *het_arena_printf(struct het_arena *arena, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        die_of_memory();
    char *text = het_arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

size_t het_arena_bytes(const struct het_arena *arena)
{
    return arena->total_bytes;
}
