#include "controller/base/digest.h"

#include <string.h>

uint64_t digest_bytes(uint64_t digest, const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    uint64_t h = digest ? digest : 14695981039346656037u;
    for (size_t i = 0; i < length; i++)
        h = (h ^ byte[i]) * 1099511628211u;
    return h;
}

uint64_t digest_text(uint64_t digest, const char *text)
{
    return digest_bytes(digest, text, strlen(text) + 1);
}
