/*
 * inventory.c: the inventory through the C API, on any machine: right calls work, and wrong calls are refused by
 * name.
 */
#include "check.h"

#include <math.h>
#include <stdlib.h>

static yoke_inventory *taken(void)
{
    yoke_inventory *inventory = NULL;
    OK(yoke_inventory_take(&inventory));
    CHECK(inventory != NULL);
    return inventory;
}

static void every_card_of_an_inventory_can_be_read(void)
{
    yoke_inventory *inventory = taken();
    const int32_t count = yoke_inventory_count(inventory);
    CHECK(count >= 0);
    for (int32_t i = 0; i < count; ++i) {
        yoke_card_info card = {.struct_size = sizeof card};
        yoke_card_link link = {.struct_size = sizeof link};
        OK(yoke_inventory_card(inventory, i, &card));
        CHECK(card.struct_size == sizeof card && card.index == i);
        CHECK(card.name[0] && memchr(card.reason, 0, sizeof card.reason));
        OK(yoke_inventory_link(inventory, i, i, &link));
        CHECK(link.path == YOKE_PATH_SELF && strcmp(link.label, "X") == 0);
        for (int32_t k = 0; k < card.process_count; ++k) {
            yoke_card_process process = {.struct_size = sizeof process};
            OK(yoke_inventory_process(inventory, i, k, &process));
        }
    }
    CHECK(strstr(yoke_inventory_topology(inventory), count ? "GPU0" : "no GPU") != NULL);
    yoke_inventory_release(inventory);
}

static void an_index_that_is_not_there_is_refused(void)
{
    yoke_inventory *inventory = taken();
    const int32_t count = yoke_inventory_count(inventory);
    const int32_t networks = yoke_inventory_network_count(inventory);
    yoke_card_info card = {.struct_size = sizeof card};
    yoke_card_link link = {.struct_size = sizeof link};
    yoke_card_process process = {.struct_size = sizeof process};
    yoke_network_card network = {.struct_size = sizeof network};
    FAILS(yoke_inventory_card(inventory, -1, &card), YOKE_E_INDEX, "argument 'index' is -1");
    FAILS(yoke_inventory_card(inventory, count, &card), YOKE_E_INDEX, "argument 'index' is");
    FAILS(yoke_inventory_link(inventory, -1, 0, &link), YOKE_E_INDEX, "argument 'a' is -1");
    FAILS(yoke_inventory_process(inventory, count, 0, &process), YOKE_E_INDEX,
          "argument 'index' is");
    FAILS(yoke_inventory_network(inventory, networks, 0, &network, NULL), YOKE_E_INDEX,
          "argument 'index' is");
    yoke_inventory_release(inventory);
}

static void an_unknown_fact_is_refused_with_those_there_are(void)
{
    yoke_inventory *inventory = taken();
    const char *text = "left";
    FAILS(yoke_inventory_fact(inventory, "drivers", &text), YOKE_E_VALUE,
          "'drivers'; the keys are driver, driver_flavor");
    CHECK(text == NULL);
    const char *known[] = {
        "driver",      "driver_flavor",   "nvml",  "nvml_path", "nvml_problem",
        "cuda_driver", "visible_devices", "docks", "container", "virtual_machine"};
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i) {
        OK(yoke_inventory_fact(inventory, known[i], &text));
        CHECK(text != NULL);
    }
    FAILS(yoke_inventory_fact(inventory, NULL, &text), YOKE_E_VALUE, "key");
    yoke_inventory_release(inventory);
}

static void a_missing_inventory_is_told(void)
{
    yoke_card_info card = {.struct_size = sizeof card};
    FAILS(yoke_inventory_take(NULL), YOKE_E_VALUE, "out");
    FAILS(yoke_inventory_card(NULL, 0, &card), YOKE_E_VALUE, "inventory");
    CHECK(yoke_inventory_count(NULL) == -1);
    CHECK(yoke_inventory_network_count(NULL) == -1);
    CHECK(yoke_inventory_topology(NULL) == NULL);
    CHECK(strcmp(yoke_path_label(YOKE_PATH_BRIDGE), "PHB") == 0 &&
          strcmp(yoke_path_label(77), "SYS") == 0);
    CHECK(yoke_inventory_retain(NULL) == NULL);
    yoke_inventory_release(NULL);
}

static void an_inventory_lives_as_long_as_its_references(void)
{
    yoke_inventory *inventory = taken();
    CHECK(yoke_inventory_retain(inventory) == inventory);
    yoke_inventory_release(inventory);
    CHECK(yoke_inventory_count(inventory) >= 0);
    yoke_inventory_release(inventory);
}

static void the_cpu_is_sampled_like_a_card(void)
{
    yoke_device *cpu = NULL;
    yoke_card_info card = {.struct_size = sizeof card};
    OK(yoke_device_open("cpu", &cpu));
    OK(yoke_device_sample(cpu, &card));
    CHECK(card.present == 1 && card.memory_total > 0 && card.memory_free <= card.memory_total);
    CHECK(card.index == -1 && isnan(card.power));
    /* Utilization counts work since the last sample, so the test does some work. */
    volatile double sum = 0;
    for (int i = 0; i < 60000000; ++i) sum += i;
    OK(yoke_device_sample(cpu, &card));
    CHECK(card.utilization > 0 && card.utilization <= 1);
    card.struct_size = 3;
    FAILS(yoke_device_sample(cpu, &card), YOKE_E_VALUE, "struct_size of argument 'card' is 3");
    FAILS(yoke_device_sample(NULL, &card), YOKE_E_VALUE, "device");
    FAILS(yoke_device_sample(cpu, NULL), YOKE_E_VALUE, "card");
    yoke_device_release(cpu);
}

int main(void)
{
    RUN(every_card_of_an_inventory_can_be_read);
    RUN(an_index_that_is_not_there_is_refused);
    RUN(an_unknown_fact_is_refused_with_those_there_are);
    RUN(a_missing_inventory_is_told);
    RUN(an_inventory_lives_as_long_as_its_references);
    RUN(the_cpu_is_sampled_like_a_card);
    return report();
}
