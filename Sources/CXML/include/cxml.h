#ifndef CXML_H
#define CXML_H

#include <stddef.h>

/* The part of libxml2 that is used, opened at run time. Its functions have had these forms since 2.6; no structure of the library is
   looked into. */
struct cxml_calls {
    void (*init)(void);
    void *(*reader)(const char *buffer, int size, const char *url, const char *encoding, int options);
    void (*free_reader)(void *reader);
    int (*read)(void *reader);
    int (*node_type)(void *reader);
    int (*depth)(void *reader);
    int (*is_empty_element)(void *reader);
    const unsigned char *(*local_name)(void *reader);
    const unsigned char *(*value)(void *reader);
    int (*next_attribute)(void *reader);
    int (*is_namespace)(void *reader);
    int (*move_to_element)(void *reader);
};

enum cxml_opening { CXML_OPENED, CXML_NO_LIBRARY, CXML_NO_SYMBOL };

/* Opens the library by the name that programs are linked against.
   told: gets the loader's words, or the name of the missing function. */
int cxml_open(const char *soname, struct cxml_calls *calls, char *told, size_t room);

/* No network, nothing written to standard error, no entity replaced (xmlParserOption). */
enum { CXML_QUIET = 1 << 5 | 1 << 6, CXML_NO_NETWORK = 1 << 11 };

/* Kinds of nodes (xmlReaderTypes). */
enum {
    CXML_ELEMENT = 1,
    CXML_TEXT = 3,
    CXML_CDATA = 4,
    CXML_ENTITY_REFERENCE = 5,
    CXML_DOCUMENT_TYPE = 10,
    CXML_SPACE = 13,
    CXML_SIGNIFICANT_SPACE = 14,
    CXML_END_ELEMENT = 15
};

#endif
