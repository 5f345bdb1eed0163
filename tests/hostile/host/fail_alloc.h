/* What a test asks of fail_alloc.c. */
#ifndef YOKE_TESTS_FAIL_ALLOC_H
#define YOKE_TESTS_FAIL_ALLOC_H

/* From here on the n-th fails; of 0, none, and they are counted. */
void fail_alloc_arm(long n);

/* Whether it has come so far. */
int fail_alloc_disarm(void);

/* Blocks that were taken while armed and not given back; the number of the last of them; who took those that came
 * after. */
long fail_alloc_blocks(void);
long fail_alloc_number(void);
void fail_alloc_tell(long number);

#endif /* YOKE_TESTS_FAIL_ALLOC_H */
