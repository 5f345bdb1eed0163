/* The doctor and the catalog from C: reports whole, structs of other sizes, what cannot be meant. */
#include "check.h"

#include "yoke/doctor.h"

static void a_report_is_whole_and_its_exit_code_counts_failures(void)
{
    yoke_report *made = NULL;
    CHECK(yoke_doctor(0, 0, &made) == YOKE_OK);
    const int32_t count = yoke_report_count(made);
    CHECK(count >= 45);
    int32_t failed = 0;
    for (int32_t i = 0; i < count; ++i) {
        yoke_check check;
        memset(&check, 0, sizeof check);
        check.struct_size = sizeof check;
        CHECK(yoke_report_check(made, i, &check) == YOKE_OK);
        CHECK(check.number == i + 1);
        CHECK(check.id[0] && check.title[0] && check.evidence[0]);
        CHECK(strncmp(check.url, "https://", 8) == 0);
        const int trouble = check.status == YOKE_CHECK_WARN || check.status == YOKE_CHECK_FAIL;
        CHECK((check.remedy[0] != '\0') == trouble);
        failed += check.status == YOKE_CHECK_FAIL;
    }
    CHECK(yoke_report_exit_code(made) == (failed ? 1 : 0));
    yoke_check check = {.struct_size = sizeof check};
    CHECK(yoke_report_check(made, count, &check) == YOKE_E_INDEX);
    CHECK(yoke_report_check(made, -1, &check) == YOKE_E_INDEX);
    check.struct_size = 2;
    CHECK(yoke_report_check(made, 0, &check) == YOKE_E_VALUE);
    yoke_report_release(made);
}

static void a_smaller_struct_gets_what_it_has_room_for(void)
{
    struct {
        uint32_t struct_size;
        int32_t number;
        int32_t after;
    } small = {8, 0, 77};
    yoke_report *made = NULL;
    CHECK(yoke_doctor(YOKE_DOCTOR_REDACT, 0, &made) == YOKE_OK);
    CHECK(yoke_report_check(made, 2, (yoke_check *)(void *)&small) == YOKE_OK);
    CHECK(small.struct_size == 8 && small.number == 3 && small.after == 77);
    yoke_report_release(made);
}

static void what_cannot_be_meant_is_refused(void)
{
    yoke_report *made = (yoke_report *)&made;
    CHECK(yoke_doctor(64, 0, &made) == YOKE_E_VALUE);
    CHECK(made == NULL);
    CHECK(strstr(yoke_last_error()->message, "0x40"));
    CHECK(yoke_doctor(0, -1, &made) == YOKE_E_VALUE);
    CHECK(yoke_doctor(0, 0, NULL) == YOKE_E_VALUE);
    CHECK(yoke_report_count(NULL) == -1);
    CHECK(yoke_report_exit_code(NULL) == 2);
    CHECK(yoke_doctor_record(NULL, 0) == YOKE_E_VALUE);
    CHECK(yoke_doctor_record("/proc/yoke-cannot-be-here", 0) == YOKE_E_IO);
    CHECK(strstr(yoke_last_error()->message, "/proc/yoke-cannot-be-here"));
    CHECK(yoke_doctor_record_v2("/proc/yoke-cannot-be-here", 0, 5) == YOKE_E_IO);
    CHECK(yoke_doctor_record_v2("/tmp/yoke-not-made", 0, -1) == YOKE_E_VALUE);
    yoke_report_release(NULL);
}

static void the_catalog_is_found_by_the_drivers_names(void)
{
    CHECK(yoke_catalog_count() >= 24);
    const int32_t index = yoke_catalog_find("NVIDIA H200", 143771ll << 20);
    yoke_catalog_card card = {.struct_size = sizeof card};
    CHECK(index >= 0);
    CHECK(yoke_catalog_get(index, &card) == YOKE_OK);
    CHECK(strcmp(card.name, "H200 SXM") == 0);
    CHECK(card.memory == 143771ll << 20 && card.cc_major == 9 && card.multiprocessors == 132);
    CHECK(yoke_catalog_find("Abacus 1", 0) == -1);
    CHECK(yoke_catalog_find(NULL, 0) == -1);
    CHECK(yoke_catalog_get(-1, &card) == YOKE_E_INDEX);
    CHECK(yoke_catalog_get(yoke_catalog_count(), &card) == YOKE_E_INDEX);
    CHECK(yoke_catalog_get(0, NULL) == YOKE_E_VALUE);
}

int main(void)
{
    RUN(a_report_is_whole_and_its_exit_code_counts_failures);
    RUN(a_smaller_struct_gets_what_it_has_room_for);
    RUN(what_cannot_be_meant_is_refused);
    RUN(the_catalog_is_found_by_the_drivers_names);
    return report();
}
