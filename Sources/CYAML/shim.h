#ifndef CARDEA_CYAML_SHIM_H
#define CARDEA_CYAML_SHIM_H

#include <stddef.h>
#include <string.h>
#include <yaml.h>

/* An event's payload is an anonymous union; named readers keep the Swift side free of its layout. */

static inline const unsigned char *cyaml_scalar_bytes(const yaml_event_t *event, size_t *length, int *plain) {
    *length = event->data.scalar.length;
    *plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return event->data.scalar.value;
}

/* 1 for a scalar between quotes. */
static inline int cyaml_is_quoted(const yaml_event_t *event) {
    return event->data.scalar.style == YAML_SINGLE_QUOTED_SCALAR_STYLE
        || event->data.scalar.style == YAML_DOUBLE_QUOTED_SCALAR_STYLE;
}

static inline int cyaml_has_anchor(const yaml_event_t *event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT: return event->data.scalar.anchor != NULL;
    case YAML_SEQUENCE_START_EVENT: return event->data.sequence_start.anchor != NULL;
    case YAML_MAPPING_START_EVENT: return event->data.mapping_start.anchor != NULL;
    default: return 0;
    }
}

static inline int cyaml_has_tag(const yaml_event_t *event) {
    switch (event->type) {
    case YAML_SCALAR_EVENT: return event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT: return event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT: return event->data.mapping_start.tag != NULL;
    default: return 0;
    }
}

#endif
