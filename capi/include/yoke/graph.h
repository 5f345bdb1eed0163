/*
 * yoke/graph.h: a whole step, captured once and replayed.
 *
 *     yoke_graph_create(NULL, &graph);
 *     yoke_graph_begin(graph);   … forward, backward, optimizer step …   yoke_graph_end(graph);
 *     for (…) { write new inputs into the tensors that the step reads;  yoke_graph_replay(graph); }
 *
 * Between begin and end nothing runs: the calling thread's work on the graph's device is recorded (on cuda as a CUDA
 * graph). A replay runs all this work anew, in the same memory. Inputs are tensors from before the capture; the
 * script writes them between replays. Results are tensors made in the capture. The graph holds all tensors of the
 * step until its release. Memory freed within the capture is reused within the capture.
 *
 * While the thread captures, some calls are refused with STATE, since a replay would not repeat them: waits for the
 * device, copies of host memory, work on another device. Numbers computed by the host program, such as a learning
 * rate, keep their values of the capture. Each replay draws random numbers anew, after the numbers of the calling
 * thread's stream, with the seed of the capture. If optimizers and loss scalers have no state yet, the state is made
 * outside the graph, at once.
 */
#ifndef YOKE_GRAPH_H
#define YOKE_GRAPH_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_graph yoke_graph;

/* Creates an empty graph of a device (NULL: the current one). [any-thread] */
YOKE_API yoke_status yoke_graph_create(yoke_device *device, yoke_graph **out);

/* Adds a reference and returns the argument, which may be NULL. [any-thread] */
YOKE_API yoke_graph *yoke_graph_retain(yoke_graph *graph);

/* Releases a reference. If the calling thread captures the graph, the capture is aborted. If the capturing thread
 * ends, its capture is aborted too. [any-thread] */
YOKE_API void yoke_graph_release(yoke_graph *graph);

/* Begins the capture, after all work given to the device has finished. Errors: STATE if the calling thread
 * captures a graph already, or this one was captured before. [any-thread] */
YOKE_API yoke_status yoke_graph_begin(yoke_graph *graph);

/* Ends the capture. Errors: STATE in a thread other than the capturing thread; the device's errors for the graph,
 * which is then empty. [one-thread: the thread of yoke_graph_begin] */
YOKE_API yoke_status yoke_graph_end(yoke_graph *graph);

/* Gives the capture up: the graph is empty, and may be captured again. Without effect unless the calling thread
 * captures this graph. [one-thread: the thread of yoke_graph_begin] */
YOKE_API void yoke_graph_abort(yoke_graph *graph);

/* Runs the captured work, in order, without waiting for it. Errors: STATE if nothing was captured or the calling
 * thread captures. Replays of a graph come from one thread at a time: while a replay call runs, a second thread gets
 * STATE. [any-thread] */
YOKE_API yoke_status yoke_graph_replay(yoke_graph *graph);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_GRAPH_H */
