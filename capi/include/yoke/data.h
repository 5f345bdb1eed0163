/*
 * yoke/data.h: readers of data files.
 */
#ifndef YOKE_DATA_H
#define YOKE_DATA_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Reads an IDX file (the format of MNIST: magic number, lengths, big-endian elements), plain or gzip-compressed, into
 * a CPU tensor of its shape.
 * Errors: IO for a file that cannot be read, ends early or is damaged; VALUE for a file without an array of the
 * format. All name the path. [any-thread]
 * Source: Y. LeCun, C. Cortes, C. Burges, "The MNIST database of handwritten digits". */
YOKE_API yoke_status yoke_read_idx(const char *path, yoke_tensor **out);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_DATA_H */
