#include "cxml.h"

#include <dlfcn.h>
#include <stdio.h>

int cxml_open(const char *soname, struct cxml_calls *calls, char *told, size_t room) {
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *words = dlerror();
        snprintf(told, room, "%s", words ? words : soname);
        return CXML_NO_LIBRARY;
    }
    // A function's address fits an object pointer on every system with dlsym (POSIX).
    const struct {
        const char *name;
        void **place;
    } wanted[] = {
        {"xmlInitParser", (void **)&calls->init},
        {"xmlReaderForMemory", (void **)&calls->reader},
        {"xmlFreeTextReader", (void **)&calls->free_reader},
        {"xmlTextReaderRead", (void **)&calls->read},
        {"xmlTextReaderNodeType", (void **)&calls->node_type},
        {"xmlTextReaderDepth", (void **)&calls->depth},
        {"xmlTextReaderIsEmptyElement", (void **)&calls->is_empty_element},
        {"xmlTextReaderConstLocalName", (void **)&calls->local_name},
        {"xmlTextReaderConstValue", (void **)&calls->value},
        {"xmlTextReaderMoveToNextAttribute", (void **)&calls->next_attribute},
        {"xmlTextReaderIsNamespaceDecl", (void **)&calls->is_namespace},
        {"xmlTextReaderMoveToElement", (void **)&calls->move_to_element},
    };
    for (size_t index = 0; index < sizeof wanted / sizeof wanted[0]; index++) {
        *wanted[index].place = dlsym(library, wanted[index].name);
        if (!*wanted[index].place) {
            snprintf(told, room, "%s", wanted[index].name);
            return CXML_NO_SYMBOL;
        }
    }
    return CXML_OPENED;
}
