/* Functions of fail_alloc.c for tests. */
#ifndef YOKE_TESTS_FAIL_ALLOC_H
#define YOKE_TESTS_FAIL_ALLOC_H

/* Makes the n-th allocation from here on fail. With 0, none fails, and allocations are counted. */
void fail_alloc_arm(long n);

/* Disarms; returns whether the allocation has failed. */
int fail_alloc_disarm(void);

/* fail_alloc_blocks() counts blocks taken while armed and not given back. fail_alloc_number() returns the number of
 * the last such block. fail_alloc_tell() prints the callers of later blocks. */
long fail_alloc_blocks(void);
long fail_alloc_number(void);
void fail_alloc_tell(long number);

#endif /* YOKE_TESTS_FAIL_ALLOC_H */
