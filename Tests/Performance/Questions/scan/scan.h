// Question 1: the scans of a head in C with SSE2, sixteen octets a step. Reads no octet behind `limit`.
#pragma once
#include "../counted.h"
#include <emmintrin.h>

/// The offset of the first CR, LF or NUL, or `limit`.
static inline long scan_line_break(const uint8_t *bytes, long from, long limit) {
    const __m128i cr = _mm_set1_epi8(13), lf = _mm_set1_epi8(10), nul = _mm_setzero_si128();
    for (; from + 16 <= limit; from += 16) {
        __m128i octets = _mm_loadu_si128((const __m128i *)(bytes + from));
        int found = _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(octets, cr), _mm_cmpeq_epi8(octets, lf)), _mm_cmpeq_epi8(octets, nul)));
        if (found) return from + __builtin_ctz(found);
    }
    for (; from < limit; from++)
        if (bytes[from] == 13 || bytes[from] == 10 || bytes[from] == 0) return from;
    return limit;
}

/// The offset of the first colon, or `limit`.
static inline long scan_colon(const uint8_t *bytes, long from, long limit) {
    const __m128i colon = _mm_set1_epi8(':');
    for (; from + 16 <= limit; from += 16) {
        int found = _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(bytes + from)), colon));
        if (found) return from + __builtin_ctz(found);
    }
    while (from < limit && bytes[from] != ':') from++;
    return from;
}
