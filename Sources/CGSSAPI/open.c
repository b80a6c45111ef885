#include "cgssapi.h"

#include <dlfcn.h>
#include <stdio.h>

int cgss_open(const char *soname, struct cgss_calls *calls, char *told, size_t room) {
    void *library = dlopen(soname, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!library) {
        const char *words = dlerror();
        snprintf(told, room, "%s", words ? words : soname);
        return CGSS_NO_LIBRARY;
    }
    // dlsym on this handle also searches the libraries that it depends on, libkrb5 among them. A function's address fits an object
    // pointer on every system with dlsym (POSIX).
    const struct {
        const char *name;
        void **place;
    } wanted[] = {
        {"gss_import_name", (void **)&calls->import_name},
        {"gss_release_name", (void **)&calls->release_name},
        {"gss_acquire_cred_from", (void **)&calls->acquire_cred_from},
        {"gss_acquire_cred_impersonate_name", (void **)&calls->acquire_cred_impersonate_name},
        {"gss_set_neg_mechs", (void **)&calls->set_neg_mechs},
        {"gss_inquire_cred", (void **)&calls->inquire_cred},
        {"gss_release_cred", (void **)&calls->release_cred},
        {"gss_init_sec_context", (void **)&calls->init_sec_context},
        {"gss_delete_sec_context", (void **)&calls->delete_sec_context},
        {"gss_release_buffer", (void **)&calls->release_buffer},
        {"gss_display_status", (void **)&calls->display_status},
        {"krb5_init_context", (void **)&calls->krb5_init_context},
        {"krb5_free_context", (void **)&calls->krb5_free_context},
        {"krb5_cc_new_unique", (void **)&calls->krb5_cc_new_unique},
        {"krb5_cc_resolve", (void **)&calls->krb5_cc_resolve},
        {"krb5_cc_get_name", (void **)&calls->krb5_cc_get_name},
        {"krb5_cc_close", (void **)&calls->krb5_cc_close},
        {"krb5_cc_destroy", (void **)&calls->krb5_cc_destroy},
        {"krb5_cc_get_principal", (void **)&calls->krb5_cc_get_principal},
        {"krb5_cc_initialize", (void **)&calls->krb5_cc_initialize},
        {"krb5_cc_copy_creds", (void **)&calls->krb5_cc_copy_creds},
        {"krb5_free_principal", (void **)&calls->krb5_free_principal},
        {"krb5_get_error_message", (void **)&calls->krb5_get_error_message},
        {"krb5_free_error_message", (void **)&calls->krb5_free_error_message},
    };
    for (size_t index = 0; index < sizeof wanted / sizeof wanted[0]; index++) {
        *wanted[index].place = dlsym(library, wanted[index].name);
        if (!*wanted[index].place) {
            snprintf(told, room, "%s", wanted[index].name);
            return CGSS_NO_SYMBOL;
        }
    }
    return CGSS_OPENED;
}
