/*
 * yoke/stream.h: streams and events: in which order a device does its work.
 *
 * A stream is an order of work on one device: what is given to one stream is done in that order, what is
 * given to two is ordered by events alone. Every thread has a current stream of each device, at first the
 * default one, and gives it all it does there: launches, copies, memory. Memory may be used on another
 * stream than it was made on, and be released at once: before it serves again, its own stream waits for
 * the others. That one stream reads what another has written is for the program to order, by an event.
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

/* A stream of a device (NULL: the current one). Of two, the one of higher priority runs first where the
 * device knows priorities; 0 is usual. The device's own stream stays with Yoke after the last release, for
 * the next one that is made. Errors: UNSUPPORTED where there are no streams, STATE where 255 are in use,
 * FORKED. [any-thread] */
YOKE_API yoke_status yoke_stream_create(yoke_device *device, int32_t priority, yoke_stream **out);

/* A stream that the program made itself: on cuda a cudaStream_t. It must stay valid until the last release,
 * and is never destroyed by Yoke. NULL is the default stream, as cudaStreamLegacy is.
 * Errors: VALUE for a device whose streams are no handles ("cpu"), and on cuda for cudaStreamPerThread, which
 * means another stream in each thread. [any-thread] */
YOKE_API yoke_status yoke_stream_wrap(void *native, yoke_device *device, yoke_stream **out);

/* One more reference to a stream; returns it. NULL is passed through. [any-thread] */
YOKE_API yoke_stream *yoke_stream_retain(yoke_stream *stream);

/* One reference less. NULL is ignored. Work that was given to it goes on. Never blocks. [any-thread] */
YOKE_API void yoke_stream_release(yoke_stream *stream);

/* Its device, borrowed; NULL on NULL. [any-thread] */
YOKE_API yoke_device *yoke_stream_device(yoke_stream *stream);

/* The device's own handle, on cuda the cudaStream_t; NULL for the default stream and on NULL. Lives as
 * long as the stream. [any-thread] */
YOKE_API void *yoke_stream_handle(yoke_stream *stream);

/* 1 if the two are one stream of one device, else 0; -1 if either is NULL. [any-thread] */
YOKE_API int32_t yoke_stream_equal(yoke_stream *a, yoke_stream *b);

/* Waits until all work given to the stream has finished. A failure of that work surfaces here.
 * [any-thread] */
YOKE_API yoke_status yoke_stream_synchronize(yoke_stream *stream);

/* Whether all work given to the stream has finished. [any-thread] */
YOKE_API yoke_status yoke_stream_query(yoke_stream *stream, int32_t *idle);

/* What is given to the stream from now on is done after the event; the caller goes on. An event that was
 * never recorded holds nothing up. One of another kind of device is waited for by the caller. [any-thread] */
YOKE_API yoke_status yoke_stream_wait_event(yoke_stream *stream, yoke_event *event);

/* ---- The current stream ------------------------------------------------------------------------------ */

/* Makes a stream the calling thread's current one of its device. The thread keeps a reference until it
 * chooses another or ends. [any-thread] */
YOKE_API yoke_status yoke_set_stream(yoke_stream *stream);

/* The calling thread's current stream of a device (NULL: the current one). [any-thread] */
YOKE_API yoke_status yoke_current_stream(yoke_device *device, yoke_stream **out);

/* Tells that work which Yoke does not see uses the tensor on this stream: its memory serves again after
 * what the stream was given until the last release. Errors: VALUE for a stream of another device.
 * [any-thread] */
YOKE_API yoke_status yoke_tensor_record_stream(yoke_tensor *tensor, yoke_stream *stream);

/* Tells that work which Yoke does not see uses the tensor, and that it ends before this event, of any device: the
 * memory serves again once the event is reached, or its next user's stream waits for the event. What a stream was given
 * behind the event is not waited for, as it is after record_stream. An event that was never recorded changes nothing.
 * [any-thread] */
YOKE_API yoke_status yoke_tensor_record_use(yoke_tensor *tensor, yoke_event *event);

/* ---- Events ------------------------------------------------------------------------------------------ */

/* An event; `timing` 1 makes it keep the time. It belongs to the device on which it is first recorded, and
 * counts as reached until then. [any-thread] */
YOKE_API yoke_status yoke_event_create(int32_t timing, yoke_event **out);

/* One more reference to an event; returns it. NULL is passed through. [any-thread] */
YOKE_API yoke_event *yoke_event_retain(yoke_event *event);

/* One reference less. NULL is ignored. Streams that wait for it go on waiting. Never blocks. [any-thread] */
YOKE_API void yoke_event_release(yoke_event *event);

/* Puts the event behind what the stream was given so far, wherever it stood before. NULL is the current
 * stream of the event's device, or of the current device. Two threads may not record one event at once.
 * Errors: VALUE for a stream of another device than at the first record. [any-thread] */
YOKE_API yoke_status yoke_event_record(yoke_event *event, yoke_stream *stream);

/* Whether it was reached. [any-thread] */
YOKE_API yoke_status yoke_event_query(yoke_event *event, int32_t *reached);

/* Waits until it is reached. A failure of the work before it surfaces here. [any-thread] */
YOKE_API yoke_status yoke_event_synchronize(yoke_event *event);

/* The time from `start` to `end`, both reached, in seconds.
 * Errors: VALUE for events without timing or of two devices, STATE for one that was not recorded or is not
 * reached yet. [any-thread] */
YOKE_API yoke_status yoke_event_elapsed(yoke_event *start, yoke_event *end, double *seconds);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_STREAM_H */
