/* Streams, events and pinned memory from C. */
#include "check.h"

static yoke_device *cpu(void)
{
    static yoke_device *device;
    if (!device) OK(yoke_device_open("cpu", &device));
    return device;
}

static void a_thread_starts_on_the_default_stream_and_may_choose_another(void)
{
    yoke_stream *before = NULL, *side = NULL, *now = NULL;
    OK(yoke_current_stream(cpu(), &before));
    CHECK(yoke_stream_handle(before) == NULL);
    CHECK(yoke_stream_device(before) == cpu());
    OK(yoke_stream_create(cpu(), 0, &side));
    CHECK(yoke_stream_equal(side, before) == 0);
    OK(yoke_set_stream(side));
    OK(yoke_current_stream(cpu(), &now));
    CHECK(yoke_stream_equal(side, now) == 1);
    yoke_stream_release(now);
    yoke_stream_release(side); /* the thread holds it */
    OK(yoke_current_stream(cpu(), &now));
    CHECK(yoke_stream_handle(now) != NULL);
    OK(yoke_set_stream(before));
    yoke_stream_release(now);
    yoke_stream_release(before);
}

static void streams_of_the_cpu_run_at_once_in_the_caller(void)
{
    const float values[] = {1, 2, 3}, doubled[] = {2, 4, 6};
    const int64_t shape = 3;
    yoke_stream *before = NULL, *side = NULL;
    yoke_tensor *x = floats(values, &shape, 1), *y = NULL;
    yoke_event *event = NULL;
    int32_t idle = 0;
    OK(yoke_current_stream(cpu(), &before));
    OK(yoke_stream_create(cpu(), 3, &side));
    OK(yoke_set_stream(side));
    OK(yoke_add(x, x, &y));
    OK(yoke_stream_query(side, &idle));
    CHECK(idle == 1);
    OK(yoke_stream_synchronize(side));
    check_floats(y, doubled, 3);
    OK(yoke_tensor_record_stream(y, before));
    OK(yoke_event_create(0, &event));
    OK(yoke_tensor_record_use(y, event));
    OK(yoke_event_record(event, side));
    OK(yoke_tensor_record_use(y, event));
    CHECK(yoke_tensor_record_use(y, NULL) == YOKE_E_VALUE);
    yoke_event_release(event);
    OK(yoke_set_stream(before));
    yoke_tensor_release(x);
    yoke_tensor_release(y);
    yoke_stream_release(side);
    yoke_stream_release(before);
}

static void events_are_reached_in_order_and_keep_the_time(void)
{
    yoke_stream *side = NULL;
    yoke_event *first = NULL, *last = NULL, *plain = NULL;
    double seconds = -1;
    int32_t reached = 0;
    OK(yoke_stream_create(cpu(), 0, &side));
    OK(yoke_event_create(1, &first));
    OK(yoke_event_create(1, &last));
    OK(yoke_event_create(0, &plain));
    OK(yoke_event_query(first, &reached));
    CHECK(reached == 1); /* never recorded */
    OK(yoke_event_synchronize(first));
    OK(yoke_stream_wait_event(side, first));
    FAILS(yoke_event_elapsed(first, last, &seconds), YOKE_E_STATE, "never recorded");
    OK(yoke_event_record(first, side));
    OK(yoke_event_record(last, NULL));
    OK(yoke_event_record(plain, side));
    OK(yoke_stream_wait_event(side, last));
    OK(yoke_event_elapsed(first, last, &seconds));
    CHECK(seconds >= 0 && seconds < 60);
    FAILS(yoke_event_elapsed(first, plain, &seconds), YOKE_E_VALUE, "timing");
    CHECK(yoke_event_retain(plain) == plain);
    yoke_event_release(plain);
    yoke_event_release(plain);
    yoke_event_release(last);
    yoke_event_release(first);
    yoke_stream_release(side);
}

static void what_is_missing_is_named(void)
{
    yoke_stream *stream = NULL;
    int32_t yes = 7;
    int there = 0;
    FAILS(yoke_stream_create(cpu(), 0, NULL), YOKE_E_VALUE, "'out'");
    FAILS(yoke_stream_synchronize(NULL), YOKE_E_VALUE, "'stream'");
    FAILS(yoke_stream_query(NULL, &yes), YOKE_E_VALUE, "'stream'");
    FAILS(yoke_stream_wrap(&there, cpu(), &stream), YOKE_E_VALUE, "no streams to wrap");
    CHECK(stream == NULL && yes == 7);
    OK(yoke_stream_wrap(NULL, cpu(), &stream));
    CHECK(yoke_stream_handle(stream) == NULL);
    FAILS(yoke_stream_wait_event(stream, NULL), YOKE_E_VALUE, "'event'");
    FAILS(yoke_event_record(NULL, stream), YOKE_E_VALUE, "'event'");
    CHECK(yoke_stream_retain(NULL) == NULL && yoke_event_retain(NULL) == NULL);
    CHECK(yoke_stream_device(NULL) == NULL && yoke_stream_handle(NULL) == NULL);
    CHECK(yoke_stream_equal(stream, NULL) == -1 && yoke_tensor_is_pinned(NULL) == -1);
    CHECK(yoke_stream_retain(stream) == stream);
    yoke_stream_release(stream);
    yoke_stream_release(stream);
    yoke_stream_release(NULL);
    yoke_event_release(NULL);
}

static void a_pinned_copy_holds_the_values(void)
{
    const float values[] = {4, 5, 6};
    const int64_t shape = 3;
    yoke_tensor *x = floats(values, &shape, 1), *pinned = NULL, *again = NULL, *moved = NULL;
    OK(yoke_tensor_pin_memory(x, &pinned));
    CHECK(yoke_tensor_is_pinned(pinned) == 1 && yoke_tensor_is_pinned(x) == 0);
    check_floats(pinned, values, 3);
    OK(yoke_tensor_pin_memory(pinned, &again));
    CHECK(again == pinned);
    OK(yoke_tensor_to_v2(pinned, cpu(), YOKE_F64, 1, &moved));
    CHECK(yoke_tensor_dtype(moved) == YOKE_F64);
    yoke_tensor_release(moved);
    yoke_tensor_release(again);
    yoke_tensor_release(pinned);
    yoke_tensor_release(x);
}

static void a_block_restores_the_device_that_the_thread_had_or_none(void)
{
    yoke_device *cpu = NULL, *current = NULL;
    OK(yoke_device_open("cpu", &cpu));
    CHECK(yoke_device_swap(cpu) == NULL);
    OK(yoke_current_device(&current));
    CHECK(current == cpu);
    CHECK(yoke_device_swap(cpu) == cpu);
    CHECK(yoke_device_swap(NULL) == cpu);
    CHECK(yoke_device_swap(NULL) == NULL);
    OK(yoke_set_device(cpu));
    CHECK(yoke_device_swap(NULL) == cpu);
    yoke_device_release(current);
    yoke_device_release(cpu);
}

int main(void)
{
    RUN(a_block_restores_the_device_that_the_thread_had_or_none);
    RUN(a_thread_starts_on_the_default_stream_and_may_choose_another);
    RUN(streams_of_the_cpu_run_at_once_in_the_caller);
    RUN(events_are_reached_in_order_and_keep_the_time);
    RUN(what_is_missing_is_named);
    RUN(a_pinned_copy_holds_the_values);
    return report();
}
