// Accessors for Swift of the frame header, which is a member of nghttp2's union of frames.
#ifndef CARDEA_CNGHTTP2_H
#define CARDEA_CNGHTTP2_H

#include <nghttp2/nghttp2.h>

static inline uint8_t cardea_frame_type(const nghttp2_frame *frame) { return frame->hd.type; }
static inline uint8_t cardea_frame_flags(const nghttp2_frame *frame) { return frame->hd.flags; }
static inline int32_t cardea_frame_stream(const nghttp2_frame *frame) { return frame->hd.stream_id; }
static inline size_t cardea_frame_length(const nghttp2_frame *frame) { return frame->hd.length; }

#endif
