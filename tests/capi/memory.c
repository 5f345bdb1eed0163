/* Settings of the allocator, and functions that are asked when a device has no memory left. No machine has as much as
 * is asked for here. */
#include "tests/capi/check.h"

static const int64_t kTooMuch = INT64_C(1) << 50;

typedef struct Asked {
    int count, dropped;
    int32_t answer;
    yoke_device *device;
    int64_t bytes;
    void *held; /* block that the callback frees */
} Asked;

static int32_t answer(void *user, yoke_device *device, int64_t bytes)
{
    Asked *asked = user;
    ++asked->count;
    asked->device = device;
    asked->bytes = bytes;
    if (asked->held) OK(yoke_free(asked->held));
    asked->held = NULL;
    return asked->answer;
}

/* Asks for memory, and removes the callback. */
static int32_t leave(void *user, yoke_device *device, int64_t bytes)
{
    void *block = NULL;
    FAILS(yoke_alloc(bytes, device, NULL, &block), YOKE_E_OOM, "no memory on cpu");
    OK(yoke_remove_on_out_of_memory(*(int64_t *)user));
    return 1;
}

static void drop(void *user)
{
    ++((Asked *)user)->dropped;
}

static void request_too_much(yoke_device *cpu)
{
    void *block = NULL;
    FAILS(yoke_alloc(kTooMuch, cpu, NULL, &block), YOKE_E_OOM, "no memory on cpu");
    CHECK(block == NULL);
}

static void collectors_are_asked_once_and_functions_thrice_at_most(void)
{
    yoke_device *cpu = NULL;
    Asked collector = {.answer = 1}, first = {.answer = 0}, second = {.answer = 1};
    int64_t collector_id = 0, first_id = 0, second_id = 0;
    OK(yoke_device_open("cpu", &cpu));
    OK(yoke_add_garbage_collector(answer, &collector, drop, &collector_id));
    OK(yoke_on_out_of_memory(answer, &first, drop, &first_id));
    request_too_much(cpu);
    CHECK(collector.count == 1 && first.count == 1 && first.device == cpu);
    CHECK(first.bytes == kTooMuch);
    OK(yoke_on_out_of_memory(answer, &second, drop, &second_id));
    request_too_much(cpu);
    CHECK(collector.count == 2 && first.count == 4 && second.count == 3);
    OK(yoke_remove_on_out_of_memory(first_id));
    OK(yoke_remove_on_out_of_memory(second_id));
    OK(yoke_remove_garbage_collector(collector_id));
    CHECK(collector.dropped == 1 && first.dropped == 1 && second.dropped == 1);
    request_too_much(cpu);
    CHECK(collector.count == 2 && first.count == 4);
    yoke_device_release(cpu);
}

static void a_function_may_allocate_and_take_itself_away(void)
{
    yoke_device *cpu = NULL;
    int64_t id = 0;
    OK(yoke_device_open("cpu", &cpu));
    OK(yoke_on_out_of_memory(leave, &id, NULL, &id));
    request_too_much(cpu);
    FAILS(yoke_remove_on_out_of_memory(id), YOKE_E_VALUE, "was not removed");
    yoke_device_release(cpu);
}

static void a_block_that_it_frees_is_free_afterwards(void)
{
    yoke_device *cpu = NULL;
    Asked asked = {.answer = 1};
    int64_t id = 0, before = 0, after = 0;
    OK(yoke_device_open("cpu", &cpu));
    OK(yoke_memory_allocated(cpu, &before));
    OK(yoke_alloc(1 << 20, cpu, NULL, &asked.held));
    OK(yoke_on_out_of_memory(answer, &asked, drop, &id));
    request_too_much(cpu);
    OK(yoke_memory_allocated(cpu, &after));
    CHECK(asked.count == 3 && after == before);
    OK(yoke_remove_on_out_of_memory(id));
    yoke_device_release(cpu);
}

static void statistics_are_a_dict_of_numbers(void)
{
    yoke_state *stats = NULL;
    int64_t allocated = -1, told = -2;
    double fragmentation = -1;
    OK(yoke_memory_stats(NULL, &stats));
    OK(yoke_memory_allocated(NULL, &told));
    OK(yoke_state_get_int(stats, "allocated_bytes.all.current", &allocated));
    OK(yoke_state_get_float(stats, "fragmentation", &fragmentation));
    CHECK(allocated == told && fragmentation >= 0 && fragmentation <= 1);
    yoke_state_release(stats);
    OK(yoke_reset_accumulated_memory_stats(NULL));
    FAILS(yoke_memory_stats(NULL, NULL), YOKE_E_VALUE, "'out' is NULL");
}

static void an_error_of_memory_has_its_numbers_and_others_have_none(void)
{
    yoke_device *cpu = NULL;
    yoke_state *details = NULL;
    int64_t requested = 0;
    OK(yoke_device_open("cpu", &cpu));
    request_too_much(cpu);
    details = yoke_oom_details();
    CHECK(details != NULL);
    OK(yoke_state_get_int(details, "requested", &requested));
    CHECK(requested == kTooMuch);
    yoke_state_release(details);
    FAILS(yoke_free(&requested), YOKE_E_VALUE, "not an allocated block");
    CHECK(yoke_oom_details() == NULL);
    CHECK(yoke_last_error()->status == YOKE_E_VALUE);
    yoke_device_release(cpu);
}

static void wrong_arguments_are_refused_and_nothing_is_dropped(void)
{
    Asked asked = {0};
    int64_t id = -1;
    FAILS(yoke_on_out_of_memory(NULL, &asked, drop, &id), YOKE_E_VALUE, "argument 'fn' is NULL");
    FAILS(yoke_on_out_of_memory(answer, &asked, drop, NULL), YOKE_E_VALUE, "'id' is NULL");
    FAILS(yoke_add_garbage_collector(NULL, &asked, drop, &id), YOKE_E_VALUE, "'fn' is NULL");
    FAILS(yoke_remove_on_out_of_memory(0), YOKE_E_VALUE, "argument 'id' is 0");
    CHECK(id == -1 && asked.dropped == 0);
    OK(yoke_add_garbage_collector(answer, &asked, drop, &id));
    FAILS(yoke_remove_on_out_of_memory(id), YOKE_E_VALUE,
          "a number that yoke_on_out_of_memory returned");
    OK(yoke_remove_garbage_collector(id));
    FAILS(yoke_remove_garbage_collector(id), YOKE_E_VALUE, "was not removed");
}

static void settings_are_changed_one_by_one_and_told(void)
{
    const char *before = NULL, *after = NULL;
    OK(yoke_set_alloc_conf("expandable_segments:True,garbage_collection_threshold:0.25"));
    OK(yoke_get_alloc_conf(&before));
    CHECK(!strcmp(before,
                  "expandable_segments:True,garbage_collection_threshold:0.25,ask_fences:False"));
    FAILS(yoke_set_alloc_conf("ask_fences:True,garbage_collection_threshold:2"), YOKE_E_VALUE,
          "set_alloc_conf: setting 'garbage_collection_threshold' is '2'; it must be 0 (off)");
    FAILS(yoke_set_alloc_conf(NULL), YOKE_E_VALUE, "'settings' is NULL");
    FAILS(yoke_get_alloc_conf(NULL), YOKE_E_VALUE, "'settings' is NULL");
    OK(yoke_get_alloc_conf(&after));
    CHECK(strstr(after, "ask_fences:False") != NULL);
    OK(yoke_set_alloc_conf("garbage_collection_threshold:0"));
}

int main(void)
{
    RUN(settings_are_changed_one_by_one_and_told);
    RUN(statistics_are_a_dict_of_numbers);
    RUN(an_error_of_memory_has_its_numbers_and_others_have_none);
    RUN(collectors_are_asked_once_and_functions_thrice_at_most);
    RUN(a_function_may_allocate_and_take_itself_away);
    RUN(a_block_that_it_frees_is_free_afterwards);
    RUN(wrong_arguments_are_refused_and_nothing_is_dropped);
    return report();
}
