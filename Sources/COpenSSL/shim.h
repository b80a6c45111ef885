// What Swift cannot call of OpenSSL (function-like macros over *_ctrl, 64-bit option macros, packed error codes), and getrandom.
#ifndef CARDEA_COPENSSL_H
#define CARDEA_COPENSSL_H

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>
#include <sys/random.h>

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

static inline int cardea_ctx_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return (int)SSL_CTX_add1_chain_cert(context, certificate);
}

static inline int cardea_set_server_name(SSL *connection, const char *name) {
    return (int)SSL_set_tlsext_host_name(connection, name);
}

static inline void cardea_set_owner(SSL *connection, void *owner) { SSL_set_app_data(connection, owner); }
static inline void *cardea_owner(const SSL *connection) { return SSL_get_app_data(connection); }

static inline const char *cardea_cipher_name(const SSL *connection) { return SSL_get_cipher_name(connection); }

static inline int cardea_error_library(unsigned long code) { return ERR_GET_LIB(code); }
static inline int cardea_error_reason(unsigned long code) { return ERR_GET_REASON(code); }

#endif
