/*
 * yoke/graph.h: a whole step, captured once and replayed.
 *
 *     yoke_graph_create(NULL, &graph);
 *     yoke_graph_begin(graph);   … forward, backward, optimizer step …   yoke_graph_end(graph);
 *     for (…) { write new inputs into the tensors that the step reads;  yoke_graph_replay(graph); }
 *
 * Between begin and end nothing runs: the calling thread's work on the graph's device is taken down (on cuda
 * as a CUDA graph). A replay runs all of it anew, in the same memory: inputs are tensors from before the
 * capture that the script writes between replays, results are the tensors that the capture made. What the
 * step names is held until the graph is released; memory that was freed within the capture serves again
 * within it.
 *
 * What waits for the device, moves bytes of the host or works on another device is refused with STATE while
 * the thread captures, since a replay would not do it. Numbers that the host computes, a learning rate
 * among them, stay as they were at the capture; random numbers are drawn anew by each replay, behind those
 * of the calling thread's stream, with the seed of the capture. State of optimizers and loss scalers that does
 * not exist yet is made outside the graph, at once.
 */
#ifndef YOKE_GRAPH_H
#define YOKE_GRAPH_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_graph yoke_graph;

/* An empty graph of a device (NULL: the current one). [any-thread] */
YOKE_API yoke_status yoke_graph_create(yoke_device *device, yoke_graph **out);

/* One more reference; returns its argument, which may be NULL. [any-thread] */
YOKE_API yoke_graph *yoke_graph_retain(yoke_graph *graph);

/* A graph that is being captured by the calling thread is aborted; so is one whose thread ends. [any-thread] */
YOKE_API void yoke_graph_release(yoke_graph *graph);

/* Begins the capture, after all work given to the device has finished. Errors: STATE if the calling thread
 * captures a graph already, or this one was captured before. [any-thread] */
YOKE_API yoke_status yoke_graph_begin(yoke_graph *graph);

/* Ends it. Errors: STATE in another thread than the one that began; what the device says of the graph, which
 * is then empty. [one-thread: the one that began] */
YOKE_API yoke_status yoke_graph_end(yoke_graph *graph);

/* Gives the capture up: the graph is empty, and may be captured again. Without effect unless the calling
 * thread captures this graph. [one-thread: the one that began] */
YOKE_API void yoke_graph_abort(yoke_graph *graph);

/* Runs what was captured, in order, without waiting for it. Errors: STATE if nothing was captured or the
 * calling thread captures. Replays of one graph come from one thread at a
 * time: while one is inside, another gets STATE. [any-thread] */
YOKE_API yoke_status yoke_graph_replay(yoke_graph *graph);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_GRAPH_H */
