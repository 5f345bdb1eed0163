/*
 * library.h: the library, opened when the program runs; what fails ends the program, warnings go to standard error.
 */
#ifndef LIBRARY_H
#define LIBRARY_H

#include "yoke/api.h"

/* Table for every call, so that the program is not linked with Yoke. */
extern const yoke_api *yoke;

void open_library(void);

void fail(const char *message);

void check(yoke_status status);

/* Puts `by`, the result of an op on `*x`, into `*x`; the former tensor is released. */
void replace(yoke_tensor **x, yoke_tensor *by);

/* From `first` up to `last`, a view. */
yoke_tensor *rows_of(yoke_tensor *x, int64_t first, int64_t last);

/* Sets rows `first` up to `last` to `values`. */
void set_rows(yoke_tensor *x, int64_t first, int64_t last, yoke_tensor *values);

#endif /* LIBRARY_H */
