// Calls of OpenSSL that Swift cannot make (function-like macros over *_ctrl, 64-bit option macros, packed error codes), and getrandom.
#ifndef CARDEA_COPENSSL_H
#define CARDEA_COPENSSL_H

#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/ocsp.h>
#include <openssl/param_build.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/rsa.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/random.h>
#include <time.h>

/// SHA256() of OpenSSL 3 fetches its algorithm anew and allocates; these do not.
static inline void cardea_sha256(const void *bytes, size_t count, unsigned char *digest) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    SHA256_CTX context;
    SHA256_Init(&context);
    SHA256_Update(&context, bytes, count);
    SHA256_Final(digest, &context);
    OPENSSL_cleanse(&context, sizeof context);
#pragma GCC diagnostic pop
}

static inline int cardea_ctx_set_minimum_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_min_proto_version(context, version);
}

static inline int cardea_ctx_set_maximum_version(SSL_CTX *context, int version) {
    return (int)SSL_CTX_set_max_proto_version(context, version);
}

static inline void cardea_ctx_set_modes(SSL_CTX *context) {
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_read_ahead(context, 1);
}

static inline void cardea_ctx_harden(SSL_CTX *context) {
    SSL_CTX_clear_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_LEGACY_SERVER_CONNECT);
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
}

static inline void cardea_ctx_allow_legacy(SSL_CTX *context) {
    SSL_CTX_clear_options(context, SSL_OP_NO_RENEGOTIATION);
    SSL_CTX_set_options(context, SSL_OP_LEGACY_SERVER_CONNECT | SSL_OP_ALLOW_UNSAFE_LEGACY_RENEGOTIATION);
    SSL_CTX_set_security_level(context, 0);
}

static inline void cardea_ctx_cache_client_sessions_outside(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}

static inline void cardea_ctx_cache_no_sessions(SSL_CTX *context) { SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF); }

static inline void cardea_ctx_prefer_server_ciphers(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA);
}

static inline void cardea_ctx_give_no_tickets(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_num_tickets(context, 0);
}

// HMAC-SHA-256 over a ticket, with a key of 32 bytes.
static inline int cardea_ticket_code(EVP_MAC_CTX *code, const unsigned char *key) {
    OSSL_PARAM parameters[3];
    parameters[0] = OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, (void *)key, 32);
    parameters[1] = OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)"SHA256", 0);
    parameters[2] = OSSL_PARAM_construct_end();
    return EVP_MAC_CTX_set_params(code, parameters);
}

static inline void cardea_ctx_set_status_callback(SSL_CTX *context, int (*answer)(SSL *, void *)) {
    SSL_CTX_set_tlsext_status_cb(context, answer);
}

// Hands the connection a copy of its own.
static inline int cardea_staple(SSL *connection, const unsigned char *bytes, size_t count) {
    unsigned char *copy = OPENSSL_memdup(bytes, count);
    if (copy == NULL) return 0;
    if (SSL_set_tlsext_status_ocsp_resp(connection, copy, (long)count) == 1) return 1;
    OPENSSL_free(copy);
    return 0;
}

static inline const EVP_MD *cardea_digest_of(const ASN1_OBJECT *algorithm) { return EVP_get_digestbyobj(algorithm); }

static inline int cardea_ctx_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline int cardea_set_server_name(SSL *connection, const char *name) {
    return (int)SSL_set_tlsext_host_name(connection, name);
}

static inline void cardea_set_owner(SSL *connection, void *owner) { SSL_set_app_data(connection, owner); }
static inline void *cardea_owner(const SSL *connection) { return SSL_get_app_data(connection); }

// After a handshake that failed by a date: 1 where an authority is out of its time and the server's own certificate is not, with the
// common name of the last such authority of the chain in `name`, which is empty where it has none. The chain ends with one of ours.
static inline int cardea_authority_out_of_time(SSL *connection, char *name, int size) {
    STACK_OF(X509) *chain = SSL_get0_verified_chain(connection);
    int found = -1;
    for (int index = 0; index < sk_X509_num(chain); index++) {
        X509 *certificate = sk_X509_value(chain, index);
        if (X509_cmp_current_time(X509_get0_notAfter(certificate)) > 0
            && X509_cmp_current_time(X509_get0_notBefore(certificate)) < 0) continue;
        if (index == 0) return 0;
        found = index;
    }
    if (found < 0) return 0;
    X509_NAME *subject = X509_get_subject_name(sk_X509_value(chain, found));
    if (X509_NAME_get_text_by_NID(subject, NID_commonName, name, size) < 0) name[0] = 0;
    return 1;
}

// Whether one of the authorities that the server named when it asked for a certificate issued this one.
static inline int cardea_requests_issuer_of(const SSL *connection, const X509 *certificate) {
    const STACK_OF(X509_NAME) *names = SSL_get0_peer_CA_list(connection);
    int count = names == NULL ? 0 : sk_X509_NAME_num(names);
    for (int index = 0; index < count; index++) {
        if (X509_NAME_cmp(sk_X509_NAME_value(names, index), X509_get_issuer_name(certificate)) == 0) return 1;
    }
    return 0;
}

// The hash of a certificate that channels are bound by (RFC 5929 section 4.1), of at most EVP_MAX_MD_SIZE bytes; 0 where the algorithm of its
// signature has none.
static inline unsigned cardea_end_point(X509 *certificate, unsigned char *hash) {
    int algorithm = NID_undef;
    if (X509_get_signature_info(certificate, &algorithm, NULL, NULL, NULL) != 1 || algorithm == NID_undef) return 0;
    if (algorithm == NID_md5 || algorithm == NID_sha1) algorithm = NID_sha256;
    const EVP_MD *function = EVP_get_digestbynid(algorithm);
    unsigned count = 0;
    if (function == NULL || X509_digest(certificate, function, hash, &count) != 1) return 0;
    return count;
}

static inline int cardea_use_identity(SSL *connection, X509 *leaf, EVP_PKEY *key, X509 *const *chain, int count) {
    STACK_OF(X509) *stack = sk_X509_new_null();
    if (stack == NULL) return 0;
    int good = 1;
    for (int index = 0; index < count && good; index++) good = sk_X509_push(stack, chain[index]) > 0;
    good = good && SSL_use_cert_and_key(connection, leaf, key, stack, 1) == 1;
    sk_X509_free(stack);
    return good;
}


static inline int cardea_key_pair(void) { return EVP_PKEY_KEYPAIR; }

static inline int cardea_error_library(unsigned long code) { return ERR_GET_LIB(code); }
static inline int cardea_error_reason(unsigned long code) { return ERR_GET_REASON(code); }

static inline EVP_PKEY *cardea_make_rsa_key(size_t bits) { return EVP_PKEY_Q_keygen(NULL, NULL, "RSA", bits); }

// EVP_EC_gen is a macro.
static inline EVP_PKEY *cardea_make_p256_key(void) { return EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256"); }

#endif
