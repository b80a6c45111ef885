#include "cgssapi.h"

#include <stdio.h>

static int32_t copy(const struct cgss_calls *calls, cgss_krb5_context context, const char *from, cgss_krb5_cache to) {
    cgss_krb5_cache source;
    int32_t code = calls->krb5_cc_resolve(context, from, &source);
    if (code) return code;
    cgss_krb5_principal owner = NULL;
    code = calls->krb5_cc_get_principal(context, source, &owner);
    if (!code) code = calls->krb5_cc_initialize(context, to, owner);
    if (!code) code = calls->krb5_cc_copy_creds(context, source, to);
    if (owner) calls->krb5_free_principal(context, owner);
    calls->krb5_cc_close(context, source);
    return code;
}

int32_t cgss_memory_cache(const struct cgss_calls *calls, const char *from, char *name, size_t room) {
    cgss_krb5_context context;
    int32_t code = calls->krb5_init_context(&context);
    if (code) {
        snprintf(name, room, "error %d of libkrb5, possibly because of krb5.conf", code);
        return code;
    }
    cgss_krb5_cache cache;
    code = calls->krb5_cc_new_unique(context, "MEMORY", NULL, &cache);
    if (!code) {
        if (from) code = copy(calls, context, from, cache);
        int count = code ? 0 : snprintf(name, room, "MEMORY:%s", calls->krb5_cc_get_name(context, cache));
        // A name that was cut would be that of another cache.
        if (count < 0 || (size_t)count >= room) code = -1;
        if (code) calls->krb5_cc_destroy(context, cache);
        else calls->krb5_cc_close(context, cache);
    }
    if (code) {
        const char *words = calls->krb5_get_error_message(context, code);
        snprintf(name, room, "%s", words ? words : "no cache in memory");
        if (words) calls->krb5_free_error_message(context, words);
    }
    calls->krb5_free_context(context);
    return code;
}

void cgss_destroy_cache(const struct cgss_calls *calls, const char *name) {
    cgss_krb5_context context;
    if (calls->krb5_init_context(&context)) return;
    cgss_krb5_cache cache;
    if (!calls->krb5_cc_resolve(context, name, &cache)) calls->krb5_cc_destroy(context, cache);
    calls->krb5_free_context(context);
}
