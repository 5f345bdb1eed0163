/*
 * yoke/doctor.h: problems of this machine's GPUs, and their remedies.
 *
 * A report is a list of checks, always complete and in the same order. Each check has a verdict, its evidence, the
 * command of the remedy and a reference to the documentation. Probes that may hang or crash run in a separate
 * process.
 */
#ifndef YOKE_DOCTOR_H
#define YOKE_DOCTOR_H

#include "yoke/inventory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_report yoke_report; /* never changes */

#define YOKE_CHECK_OK 0
#define YOKE_CHECK_WARN 1
#define YOKE_CHECK_FAIL 2
#define YOKE_CHECK_SKIP 3 /* does not apply here; the evidence says why */

/* Text is borrowed from the report. */
typedef struct yoke_check {
    uint32_t struct_size;
    int32_t number;       /* from 1; never reused */
    int32_t status;       /* YOKE_CHECK_* */
    int32_t card;         /* the card it is about, -1: the machine */
    const char *id;       /* "driver-library-mismatch" */
    const char *title;    /* "Kernel module and driver library have one version" */
    const char *evidence; /* findings: names, numbers, paths */
    const char *remedy;   /* commands, one a line; "" when all is well */
    const char *url;      /* where it is written up */
} yoke_check;

#define YOKE_DOCTOR_PROBE \
    1u /* also the checks that run work on a device (copies, a kernel), in a child process */
#define YOKE_DOCTOR_REDACT \
    2u /* no host names, users, UUIDs, serial numbers or process names in any text */

/* Examines the machine. A problem of the machine is never an error. `deadline` is the maximum of seconds for each
 * probe, 0: 10 s. Errors: VALUE for unknown flags or a negative deadline, IO if YOKE_SYSROOT is not a folder.
 * [any-thread] */
YOKE_API yoke_status yoke_doctor(uint32_t flags, double deadline, yoke_report **out);
YOKE_API void yoke_report_release(yoke_report *report);

/* Returns the number of checks; -1 after NULL. [any-thread] */
YOKE_API int32_t yoke_report_count(yoke_report *report);

/* Returns check `index`. Errors: INDEX out of range. [any-thread] */
YOKE_API yoke_status yoke_report_check(yoke_report *report, int32_t index, yoke_check *check);

/* Returns 0: nothing failed (warnings are allowed); 1: a check failed; 2: the doctor could not run. [any-thread] */
YOKE_API int32_t yoke_report_exit_code(yoke_report *report);

/* Makes `folder` and writes the sources of a report into it: the files of /sys and /proc that were read, the
 * variables, the inventory as scenario.json, the report. A replay gives the same report. Probes run anew, each with
 * the default deadline. Errors: IO with the path, also for a folder that is not empty. [any-thread] */
YOKE_API yoke_status yoke_doctor_record(const char *folder, uint32_t flags);

/* Records with a maximum of seconds for each probe, as in yoke_doctor. [any-thread] */
YOKE_API yoke_status yoke_doctor_record_v2(const char *folder, uint32_t flags, double deadline);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_DOCTOR_H */
