/*
 * library.h: the library, opened when the program runs; what fails ends the program, warnings go to standard error.
 */
#ifndef LIBRARY_H
#define LIBRARY_H

#include "yoke/api.h"

/* Every call goes through this table, so that nothing of Yoke is linked. */
extern const yoke_api *yoke;

void open_library(void);

void fail(const char *message);

void check(yoke_status status);

/* `*x` becomes `by`, the result of an op on it; what it was is released. */
void replace(yoke_tensor **x, yoke_tensor *by);

/* From `first` up to `last`, a view. */
yoke_tensor *rows_of(yoke_tensor *x, int64_t first, int64_t last);

/* These rows become `values`. */
void set_rows(yoke_tensor *x, int64_t first, int64_t last, yoke_tensor *values);

#endif /* LIBRARY_H */
