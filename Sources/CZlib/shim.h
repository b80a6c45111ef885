#ifndef CARDEA_CZLIB_SHIM_H
#define CARDEA_CZLIB_SHIM_H

#include <zlib.h>

/* The initialisers are macros, which Swift does not see. */

/* gzip (RFC 1952). */
static inline int czlib_start_gzip(z_stream *stream) {
    return deflateInit2(stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}

/* gzip or zlib (RFC 1950), told apart by the first octets. */
static inline int czlib_start_inflate(z_stream *stream) { return inflateInit2(stream, 15 + 32); }

#endif
