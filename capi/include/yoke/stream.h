/*
 * yoke/stream.h: streams and events: the order in which a device does its work.
 *
 * A stream is an order of work on a device. Work on one stream runs in the order of the calls; only events order the
 * work of two streams. Every thread has a current stream of each device, at first the default stream, for all its
 * launches, copies and memory. Memory may be used on a stream other than its own, and be released at once: before the
 * memory is reused, its own stream waits for the other streams. If a stream reads memory written on another stream,
 * the program orders them by an event.
 *
 * Streams of "cpu" run at once in the caller and are always idle.
 */
#ifndef YOKE_STREAM_H
#define YOKE_STREAM_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_stream yoke_stream; /* an order of work on one device */
typedef struct yoke_event yoke_event;   /* a point in the work of a stream */

/* ---- Streams ----------------------------------------------------------------------------------------- */

/* Creates a stream of a device (NULL: the current device). If the device knows priorities, a stream of higher
 * priority runs first; 0 is usual. After the last release Yoke keeps the native stream for the next created stream.
 * Errors: UNSUPPORTED if there are no streams, STATE if 255 are in use, FORKED. [any-thread] */
YOKE_API yoke_status yoke_stream_create(yoke_device *device, int32_t priority, yoke_stream **out);

/* Wraps a stream made by the program: on cuda a cudaStream_t. It must stay valid until the last release, and Yoke
 * never destroys it. NULL is the default stream, as cudaStreamLegacy is.
 * Errors: VALUE for a device whose streams are no handles ("cpu"), and on cuda for cudaStreamPerThread, because it
 * means a different stream in each thread. [any-thread] */
YOKE_API yoke_status yoke_stream_wrap(void *native, yoke_device *device, yoke_stream **out);

/* Adds a reference to a stream and returns the stream. NULL is passed through. [any-thread] */
YOKE_API yoke_stream *yoke_stream_retain(yoke_stream *stream);

/* Releases a reference. NULL is ignored. Work on the stream goes on. Never blocks. [any-thread] */
YOKE_API void yoke_stream_release(yoke_stream *stream);

/* Its device, borrowed; NULL on NULL. [any-thread] */
YOKE_API yoke_device *yoke_stream_device(yoke_stream *stream);

/* Returns the device's own handle, on cuda the cudaStream_t; NULL for the default stream and on NULL. Lives as
 * long as the stream. [any-thread] */
YOKE_API void *yoke_stream_handle(yoke_stream *stream);

/* Returns 1 if the two are the same stream of the same device, else 0; -1 if either is NULL. [any-thread] */
YOKE_API int32_t yoke_stream_equal(yoke_stream *a, yoke_stream *b);

/* Waits until all work given to the stream has finished. A failure of that work surfaces here.
 * [any-thread] */
YOKE_API yoke_status yoke_stream_synchronize(yoke_stream *stream);

/* Reports whether all work given to the stream has finished. A collective counts once the ranks have compared it. A
 * failure of that work surfaces here. [any-thread] */
YOKE_API yoke_status yoke_stream_query(yoke_stream *stream, int32_t *idle);

/* Orders later work of the stream after the event; the caller goes on. An event that was never recorded has no
 * effect. For an event of another kind of device, the caller waits. [any-thread] */
YOKE_API yoke_status yoke_stream_wait_event(yoke_stream *stream, yoke_event *event);

/* ---- The current stream ------------------------------------------------------------------------------ */

/* Makes a stream the calling thread's current stream of its device. The thread keeps a reference until it chooses
 * another stream or ends. [any-thread] */
YOKE_API yoke_status yoke_set_stream(yoke_stream *stream);

/* Returns the calling thread's current stream of a device (NULL: the current one). [any-thread] */
YOKE_API yoke_status yoke_current_stream(yoke_device *device, yoke_stream **out);

/* Notes that work unseen by Yoke uses the tensor on this stream. The memory is reused only after the work given to
 * the stream before the last release of the tensor. Errors: VALUE for a stream of another device. [any-thread] */
YOKE_API yoke_status yoke_tensor_record_stream(yoke_tensor *tensor, yoke_stream *stream);

/* Notes that work unseen by Yoke uses the tensor until this event, of any device. The memory is reused once the event
 * is reached, or the next user's stream waits for the event. Unlike record_stream, later work of the event's stream
 * is not waited for. An event that was never recorded changes nothing. [any-thread] */
YOKE_API yoke_status yoke_tensor_record_use(yoke_tensor *tensor, yoke_event *event);

/* ---- Events ------------------------------------------------------------------------------------------ */

/* Creates an event; `timing` 1: with time measurement. The event belongs to the device of its first record, and
 * counts as reached until then. [any-thread] */
YOKE_API yoke_status yoke_event_create(int32_t timing, yoke_event **out);

/* Adds a reference to an event and returns the event. NULL is passed through. [any-thread] */
YOKE_API yoke_event *yoke_event_retain(yoke_event *event);

/* Releases a reference. NULL is ignored. Streams that wait for the event go on waiting. Never blocks. [any-thread] */
YOKE_API void yoke_event_release(yoke_event *event);

/* Puts the event behind what the stream was given so far, wherever it stood before. NULL is the current
 * stream of the event's device, or of the current device. Two threads may not record one event at once.
 * Errors: VALUE for a stream of another device than at the first record. [any-thread] */
YOKE_API yoke_status yoke_event_record(yoke_event *event, yoke_stream *stream);

/* Reports whether the event was reached. A collective counts once the ranks have compared it. A failure of the work
 * before the event surfaces here. [any-thread] */
YOKE_API yoke_status yoke_event_query(yoke_event *event, int32_t *reached);

/* Waits until the event is reached. A failure of the work before it surfaces here. [any-thread] */
YOKE_API yoke_status yoke_event_synchronize(yoke_event *event);

/* Returns the time from `start` to `end`, both reached, in seconds.
 * Errors: VALUE for events without timing or of two devices, STATE for one that was not recorded or is not
 * reached yet. [any-thread] */
YOKE_API yoke_status yoke_event_elapsed(yoke_event *start, yoke_event *end, double *seconds);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_STREAM_H */
