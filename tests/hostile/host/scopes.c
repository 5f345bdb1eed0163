/* Threads that end inside a scope: objects held by the scope must be released. */
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

#include "tests/capi/check.h"

enum { kThreads = 50 };

static yoke_tensor *g_weight;

static yoke_tensor *filled(int64_t rows)
{
    yoke_tensor *made = NULL;
    const int64_t shape[] = {rows, 256};
    OK(yoke_ones(shape, 2, YOKE_F32, NULL, &made));
    return made;
}

static void *end_in_a_region(void *unused)
{
    yoke_autocast *region = NULL;
    yoke_tensor *product = NULL;
    OK(yoke_autocast_create(1, YOKE_BF16, 1, &region));
    yoke_autocast_swap(region);
    yoke_autocast_release(region);
    OK(yoke_matmul(g_weight, g_weight, &product)); /* keeps the cast of the weight */
    yoke_tensor_release(product);
    (void)unused;
    return NULL;
}

static void *end_in_a_capture(void *unused)
{
    yoke_graph *graph = NULL;
    yoke_tensor *product = NULL, *sum = NULL;
    OK(yoke_graph_create(NULL, &graph));
    OK(yoke_graph_begin(graph));
    OK(yoke_matmul(g_weight, g_weight, &product));
    OK(yoke_add(product, g_weight, &sum));
    yoke_tensor_release(product);
    yoke_tensor_release(sum);
    /* Afterwards no thread holds the handle, or another thread holds it and cannot end the capture. */
    if (!unused) yoke_graph_release(graph);
    return unused ? graph : NULL;
}

static void *run_in_a_thread(void *(*work)(void *), void *argument)
{
    pthread_t thread;
    void *result = NULL;
    CHECK(pthread_create(&thread, NULL, work, argument) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    return result;
}

/* The captures are left to be released by another thread, or are not. */
static void run_in_threads(void *(*work)(void *), int leave)
{
    int64_t before = 0, after = 0;
    g_weight = filled(256);
    OK(yoke_tensor_set_requires_grad(g_weight, 1));
    yoke_graph_release(run_in_a_thread(work, leave ? g_weight : NULL));
    OK(yoke_memory_allocated(NULL, &before));
    const int64_t live = yoke_live_tensor_count();
    const size_t host = mallinfo2().uordblks;
    for (int i = 0; i < kThreads; ++i)
        yoke_graph_release(run_in_a_thread(work, leave ? g_weight : NULL));
    OK(yoke_memory_allocated(NULL, &after));
    CHECK(yoke_live_tensor_count() == live);
    CHECK(after == before);
    const size_t grown = mallinfo2().uordblks - host;
    /* Memory kept in the allocator serves the next thread. Under a sanitizer there are no figures. */
    CHECK(grown < (size_t)kThreads * 4096 || grown > SIZE_MAX / 2);
    yoke_tensor_release(g_weight);
}

static void a_thread_may_end_inside_an_autocast_region(void)
{
    run_in_threads(end_in_a_region, 0);
}

static void a_thread_may_end_inside_a_capture(void)
{
    run_in_threads(end_in_a_capture, 0);
    run_in_threads(end_in_a_capture, 1);
}

static void a_capture_that_a_thread_left_is_given_up(void)
{
    g_weight = filled(256);
    yoke_graph *graph = run_in_a_thread(end_in_a_capture, g_weight);
    FAILS(yoke_graph_replay(graph), YOKE_E_STATE, "replay: the graph");
    /* The graph is empty, so any holder may capture into it. */
    yoke_tensor *sum = NULL;
    OK(yoke_graph_begin(graph));
    OK(yoke_add(g_weight, g_weight, &sum));
    OK(yoke_graph_end(graph));
    OK(yoke_graph_replay(graph));
    double value = 0;
    yoke_tensor *mean = NULL;
    OK(yoke_mean(sum, NULL, 0, 0, YOKE_NONE, &mean));
    OK(yoke_tensor_item_f64(mean, &value));
    CHECK(value == 2.0);
    yoke_tensor_release(mean);
    yoke_tensor_release(sum);
    yoke_graph_release(graph);
    yoke_tensor_release(g_weight);
}

int main(void)
{
    /* A worker with a first task amid the threads would keep memory. The memory would count as left by the threads. */
    OK(yoke_set_num_threads(1));
    RUN(a_thread_may_end_inside_an_autocast_region);
    RUN(a_thread_may_end_inside_a_capture);
    RUN(a_capture_that_a_thread_left_is_given_up);
    return report();
}
