#include "cgssapi.h"

#include <string.h>

// 1.3.6.1.5.5.2 (RFC 4178 section 3), 1.2.840.113554.1.2.2 (RFC 4121 section 4.1), 1.2.840.113554.1.2.1.4
// (RFC 2744 section 4.5), and 1.2.840.113554.1.2.2.1 (RFC 1964 section 2.1.1), each in DER without its tag and length. The library
// does not write through the pointers, although the ABI has no const.
static struct cgss_oid mechanisms[] = {
    {6, "\x2b\x06\x01\x05\x05\x02"},
    {9, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"},
};
static struct cgss_oid name_types[] = {
    {10, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04"},
    {10, "\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01"},
};

enum { INITIATE = 1 };

uint32_t cgss_import_name(const struct cgss_calls *calls, uint32_t *minor, const void *bytes, size_t count, int type,
                          cgss_name *name) {
    struct cgss_buffer text = {count, (void *)bytes};
    return calls->import_name(minor, &text, &name_types[type], name);
}

void cgss_release_name(const struct cgss_calls *calls, cgss_name name) {
    uint32_t minor;
    if (name) calls->release_name(&minor, &name);
}

/// Lets a credential of SPNEGO negotiate krb5 and nothing else.
static uint32_t confine(const struct cgss_calls *calls, uint32_t *minor, int mechanism, cgss_cred *cred, uint32_t status) {
    if (mechanism != CGSS_SPNEGO) return status;
    struct cgss_oid_set only = {1, &mechanisms[CGSS_KRB5]};
    status = calls->set_neg_mechs(minor, *cred, &only);
    if (status >> 16) {
        cgss_release_cred(calls, *cred);
        *cred = NULL;
    }
    return status;
}

uint32_t cgss_acquire(const struct cgss_calls *calls, uint32_t *minor, int mechanism, cgss_name name, const char *cache,
                      const char *keytab, cgss_cred *cred) {
    struct cgss_pair pairs[] = {{"ccache", cache}, {"client_keytab", keytab}};
    struct cgss_pairs store = {2, pairs};
    struct cgss_oid_set wanted = {1, &mechanisms[mechanism]};
    uint32_t status = calls->acquire_cred_from(minor, name, UINT32_MAX, &wanted, INITIATE, &store, cred, NULL, NULL);
    return status >> 16 ? status : confine(calls, minor, mechanism, cred, status);
}

uint32_t cgss_impersonate(const struct cgss_calls *calls, uint32_t *minor, int mechanism, cgss_cred impersonator,
                          cgss_name user, cgss_cred *cred) {
    struct cgss_oid_set wanted = {1, &mechanisms[mechanism]};
    uint32_t status = calls->acquire_cred_impersonate_name(minor, impersonator, user, UINT32_MAX, &wanted, INITIATE, cred,
                                                           NULL, NULL);
    return status >> 16 ? status : confine(calls, minor, mechanism, cred, status);
}

uint32_t cgss_remaining(const struct cgss_calls *calls, uint32_t *minor, cgss_cred cred, uint32_t *seconds) {
    return calls->inquire_cred(minor, cred, NULL, seconds, NULL, NULL);
}

void cgss_release_cred(const struct cgss_calls *calls, cgss_cred cred) {
    uint32_t minor;
    if (cred) calls->release_cred(&minor, &cred);
}

uint32_t cgss_init(const struct cgss_calls *calls, uint32_t *minor, cgss_cred cred, cgss_ctx *context, cgss_name target,
                   int mechanism, uint32_t flags, const void *bindings, size_t bindings_count, const void *input,
                   size_t input_count, struct cgss_buffer *output, uint32_t *returned_flags, uint32_t *seconds) {
    struct cgss_bindings bound;
    memset(&bound, 0, sizeof bound);
    bound.application.length = bindings_count;
    bound.application.value = (void *)bindings;
    struct cgss_buffer received = {input_count, (void *)input};
    output->length = 0;
    output->value = NULL;
    *returned_flags = 0;
    *seconds = UINT32_MAX;
    return calls->init_sec_context(minor, cred, context, target, &mechanisms[mechanism], flags, 0,
                                   bindings ? &bound : NULL, input ? &received : NULL, NULL, output, returned_flags, seconds);
}

void cgss_delete(const struct cgss_calls *calls, cgss_ctx context) {
    uint32_t minor;
    if (context) calls->delete_sec_context(&minor, &context, NULL);
}

void cgss_release_buffer(const struct cgss_calls *calls, struct cgss_buffer *buffer) {
    uint32_t minor;
    if (buffer->value) calls->release_buffer(&minor, buffer);
}

uint32_t cgss_display(const struct cgss_calls *calls, uint32_t status, int kind, int mechanism, uint32_t *more,
                      struct cgss_buffer *text) {
    uint32_t minor;
    text->length = 0;
    text->value = NULL;
    return calls->display_status(&minor, status, kind, &mechanisms[mechanism], more, text);
}
