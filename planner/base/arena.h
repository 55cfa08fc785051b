/* arena.h - memory. Out of memory ends the process (exit 70): the cluster holds all
 * state, and a half-done answer is worth less than a restart. In the library, whose
 * process is the user's, it ends a scope instead.
 *
 * An arena owns everything that lives as long as one search or one reconcile; it is
 * given back by freeing the arena, once. */
#ifndef HET_BASE_ARENA_H
#define HET_BASE_ARENA_H

#include <stdarg.h>
#include <stddef.h>

/* malloc, calloc, realloc, strdup that never return NULL. Sizes that overflow are out of
 * memory as well. xfree frees what these and all other functions of the planner return;
 * outside scopes free does the same. */
void *xmalloc(size_t size);
void *xcalloc(size_t count, size_t size);
void *xrealloc(void *old, size_t size);
void *xreallocarray(void *old, size_t count, size_t size);
void xfree(void *memory);
char *xstrdup(const char *text);
char *xasprintf(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `auto_free char *path = ...;` is freed when it leaves its scope; `return TAKE(path);`
 * hands it on instead. */
void het_free_pointer(void *pointer_to_pointer);
#define auto_free __attribute__((cleanup(het_free_pointer)))
#define TAKE(pointer)                                                                    \
    (__extension__({                                                                     \
        __auto_type taken_ = (pointer);                                                  \
        (pointer) = NULL;                                                                \
        taken_;                                                                          \
    }))

/* Grows `array` (element type as declared) so that it holds at least `needed` elements;
 * `*capacity` is its present size in elements. Growth is by doubling. */
#define ARRAY_RESERVE(array, capacity, needed)                                           \
    ((array) = het_array_reserve((array), (capacity), (needed), sizeof *(array)))
void *het_array_reserve(void *array, size_t *capacity, size_t needed, size_t element);

/* Calls run(context) in a scope: when memory runs out, this returns -1. On any return it
 * frees all that these functions allocated meanwhile on this thread. So `run` must hand
 * out none of it, must not free or grow memory from outside, and must hold no other
 * resource while it allocates. Scopes may be nested. */
int het_memory_scope(void (*run)(void *context), void *context);
/* Leaves the scope of this thread, and enters it again: around foreign code called inside
 * it. */
struct memory_scope;
struct memory_scope *het_memory_scope_leave(void);
void het_memory_scope_enter(struct memory_scope *left);

struct het_arena;

struct het_arena *het_arena_new(void);
void het_arena_free(struct het_arena *arena);
/* `size` bytes of zeros, aligned for any type, valid until the arena is freed. */
void *het_arena_alloc(struct het_arena *arena, size_t size);
/* An array of `count` zeroed elements of type `type`. */
#define HET_ARENA_ARRAY(arena, type, count)                                              \
    ((type *)het_arena_array((arena), (count), sizeof(type)))
void *het_arena_array(struct het_arena *arena, size_t count, size_t element);
char *het_arena_strdup(struct het_arena *arena, const char *text);
char *het_arena_printf(struct het_arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Bytes taken from the system by this arena. */
size_t het_arena_bytes(const struct het_arena *arena);

#endif
