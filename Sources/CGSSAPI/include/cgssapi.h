// The part of MIT Kerberos' GSSAPI ABI that an initiator needs (RFC 2744 section 3 and appendix A, and MIT's gssapi_ext.h), and
// calls through a table of functions that dlsym filled. The library's own headers are not needed.
#ifndef CARDEA_CGSSAPI_H
#define CARDEA_CGSSAPI_H

#include <stddef.h>
#include <stdint.h>

/// gss_buffer_desc (RFC 2744 section 3.2).
struct cgss_buffer {
    size_t length;
    void *value;
};

/// gss_OID_desc (RFC 2744 section 3.3). MIT packs it on macOS only.
struct cgss_oid {
    uint32_t length;
    void *elements;
};

/// gss_OID_set_desc (RFC 2744 section 3.3).
struct cgss_oid_set {
    size_t count;
    struct cgss_oid *elements;
};

/// gss_channel_bindings_struct (RFC 2744 section 3.11).
struct cgss_bindings {
    uint32_t initiator_type;
    struct cgss_buffer initiator;
    uint32_t acceptor_type;
    struct cgss_buffer acceptor;
    struct cgss_buffer application;
};

/// gss_key_value_element_desc and gss_key_value_set_desc, of MIT 1.11 and later.
struct cgss_pair {
    const char *key;
    const char *value;
};
struct cgss_pairs {
    uint32_t count;
    struct cgss_pair *elements;
};

// Handles are pointers to incomplete types, so that none is passed in the place of another.
typedef struct cgss_name_s *cgss_name;
typedef struct cgss_cred_s *cgss_cred;
typedef struct cgss_ctx_s *cgss_ctx;
typedef struct cgss_krb5_context_s *cgss_krb5_context;
typedef struct cgss_krb5_cache_s *cgss_krb5_cache;
typedef struct cgss_krb5_principal_s *cgss_krb5_principal;

/// Functions of the opened library, none of them null once `cgss_open` returned CGSS_OPENED. The library is never
/// closed again, because it keeps data of each thread and registers destructors for it.
struct cgss_calls {
    uint32_t (*import_name)(uint32_t *, struct cgss_buffer *, struct cgss_oid *, cgss_name *);
    uint32_t (*release_name)(uint32_t *, cgss_name *);
    uint32_t (*acquire_cred_from)(uint32_t *, cgss_name, uint32_t, struct cgss_oid_set *, int,
                                  const struct cgss_pairs *, cgss_cred *, struct cgss_oid_set **, uint32_t *);
    uint32_t (*acquire_cred_impersonate_name)(uint32_t *, cgss_cred, cgss_name, uint32_t, struct cgss_oid_set *, int,
                                              cgss_cred *, struct cgss_oid_set **, uint32_t *);
    uint32_t (*set_neg_mechs)(uint32_t *, cgss_cred, const struct cgss_oid_set *);
    uint32_t (*inquire_cred)(uint32_t *, cgss_cred, cgss_name *, uint32_t *, int *, struct cgss_oid_set **);
    uint32_t (*release_cred)(uint32_t *, cgss_cred *);
    uint32_t (*init_sec_context)(uint32_t *, cgss_cred, cgss_ctx *, cgss_name, struct cgss_oid *, uint32_t, uint32_t,
                                 struct cgss_bindings *, struct cgss_buffer *, struct cgss_oid **, struct cgss_buffer *,
                                 uint32_t *, uint32_t *);
    uint32_t (*delete_sec_context)(uint32_t *, cgss_ctx *, struct cgss_buffer *);
    uint32_t (*release_buffer)(uint32_t *, struct cgss_buffer *);
    uint32_t (*display_status)(uint32_t *, uint32_t, int, struct cgss_oid *, uint32_t *, struct cgss_buffer *);
    // From libkrb5, which libgssapi_krb5 depends on: a MEMORY cache lives until it is destroyed by name, and releasing the GSS
    // credential does not do so.
    int32_t (*krb5_init_context)(cgss_krb5_context *);
    void (*krb5_free_context)(cgss_krb5_context);
    int32_t (*krb5_cc_new_unique)(cgss_krb5_context, const char *, const char *, cgss_krb5_cache *);
    int32_t (*krb5_cc_resolve)(cgss_krb5_context, const char *, cgss_krb5_cache *);
    const char *(*krb5_cc_get_name)(cgss_krb5_context, cgss_krb5_cache);
    int32_t (*krb5_cc_close)(cgss_krb5_context, cgss_krb5_cache);
    int32_t (*krb5_cc_destroy)(cgss_krb5_context, cgss_krb5_cache);
    int32_t (*krb5_cc_get_principal)(cgss_krb5_context, cgss_krb5_cache, cgss_krb5_principal *);
    int32_t (*krb5_cc_initialize)(cgss_krb5_context, cgss_krb5_cache, cgss_krb5_principal);
    int32_t (*krb5_cc_copy_creds)(cgss_krb5_context, cgss_krb5_cache, cgss_krb5_cache);
    void (*krb5_free_principal)(cgss_krb5_context, cgss_krb5_principal);
    const char *(*krb5_get_error_message)(cgss_krb5_context, int32_t);
    void (*krb5_free_error_message)(cgss_krb5_context, const char *);
};

enum { CGSS_OPENED = 0, CGSS_NO_LIBRARY = 1, CGSS_NO_SYMBOL = 2 };
enum { CGSS_SPNEGO = 0, CGSS_KRB5 = 1 };
enum { CGSS_NAME_HOSTBASED = 0, CGSS_NAME_PRINCIPAL = 1 };
enum { CGSS_CODE_MAJOR = 1, CGSS_CODE_MINOR = 2 };
// Bits of calls, RFC 2744 sections 5.19 and 3.9.1.
enum { CGSS_FLAG_MUTUAL = 2 };

/// Opens a shared library by its soname and fills the table. `told` gets, ended by a zero and cut to `room` bytes, the loader's words
/// when the library is missing, or the name of the missing symbol.
int cgss_open(const char *soname, struct cgss_calls *calls, char *told, size_t room);

uint32_t cgss_import_name(const struct cgss_calls *calls, uint32_t *minor, const void *bytes, size_t count, int type,
                          cgss_name *name);
void cgss_release_name(const struct cgss_calls *calls, cgss_name name);

/// Acquires an initiator's credential of one mechanism. `name` may be null; `cache` and `keytab` are names of MIT's kinds
/// ("FILE:/…"), and both are given always, because a missing one means the default of the environment. The credential of SPNEGO is
/// confined to negotiate krb5.
uint32_t cgss_acquire(const struct cgss_calls *calls, uint32_t *minor, int mechanism, cgss_name name, const char *cache,
                      const char *keytab, cgss_cred *cred);
/// Acquires a credential in a user's name: a service ticket to the impersonator itself (S4U2Self, MS-SFU 3.1.5.1.1), by which the
/// library asks for tickets to servers later (S4U2Proxy). The tickets are in a cache of the library's own, which ends with the credential.
uint32_t cgss_impersonate(const struct cgss_calls *calls, uint32_t *minor, int mechanism, cgss_cred impersonator,
                          cgss_name user, cgss_cred *cred);
uint32_t cgss_remaining(const struct cgss_calls *calls, uint32_t *minor, cgss_cred cred, uint32_t *seconds);
void cgss_release_cred(const struct cgss_calls *calls, cgss_cred cred);

/// Makes a step of an initiator. `bindings` is application data, or null for none; `input` is null on the first step. `output` has
/// to be released by `cgss_release_buffer` whatever is returned. `seconds` gets the life of the context, UINT32_MAX where it
/// has no end or the mechanism does not say.
uint32_t cgss_init(const struct cgss_calls *calls, uint32_t *minor, cgss_cred cred, cgss_ctx *context, cgss_name target,
                   int mechanism, uint32_t flags, const void *bindings, size_t bindings_count, const void *input,
                   size_t input_count, struct cgss_buffer *output, uint32_t *returned_flags, uint32_t *seconds);
void cgss_delete(const struct cgss_calls *calls, cgss_ctx context);
void cgss_release_buffer(const struct cgss_calls *calls, struct cgss_buffer *buffer);

/// Gets a text of a status, which may have several. `more` is 0 on the first call, and 0 again after the last text.
uint32_t cgss_display(const struct cgss_calls *calls, uint32_t status, int kind, int mechanism, uint32_t *more,
                      struct cgss_buffer *text);

/// Makes a cache in memory with a name that no other cache of the process has: empty if `from` is null, otherwise with the tickets of
/// that cache, which is only read. `name` gets "MEMORY:…", ended by a zero. Returns a code of libkrb5, 0 for success; otherwise there
/// is no cache, and `name` gets the library's words for the code.
int32_t cgss_memory_cache(const struct cgss_calls *calls, const char *from, char *name, size_t room);
void cgss_destroy_cache(const struct cgss_calls *calls, const char *name);

#endif
