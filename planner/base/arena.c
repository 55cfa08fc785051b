#include "planner/base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_OUT_OF_MEMORY 70
#define FIRST_BLOCK_BYTES  4096
#define LARGEST_BLOCK_STEP ((size_t)1 << 20)

static _Noreturn void die_of_memory(void)
{
    static const char message[] = "out of memory\n";
    fwrite(message, 1, sizeof message - 1, stderr);
    _Exit(EXIT_OUT_OF_MEMORY);
}

static size_t checked_product(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        die_of_memory();
    return bytes;
}

void *xmalloc(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        die_of_memory();
    return memory;
}

void *xcalloc(size_t count, size_t size)
{
    void *memory = calloc(count ? count : 1, size ? size : 1);
    if (!memory)
        die_of_memory();
    return memory;
}

void *xreallocarray(void *old, size_t count, size_t size)
{
    size_t bytes = checked_product(count, size);
    void *memory = realloc(old, bytes ? bytes : 1);
    if (!memory)
        die_of_memory();
    return memory;
}

char *xstrdup(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(xmalloc(size), text, size);
}

char *xasprintf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text;
    if (vasprintf(&text, format, args) < 0)
        die_of_memory();
    va_end(args);
    return text;
}

void het_free_pointer(void *pointer_to_pointer)
{
    void *memory;
    memcpy(&memory, pointer_to_pointer, sizeof memory);
    free(memory);
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
        free(block);
        block = previous;
    }
    free(arena);
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
