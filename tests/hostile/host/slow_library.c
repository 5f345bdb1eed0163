/* A management library that loads for YOKE_TEST_LOADS_FOR milliseconds, and then turns out invalid. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

__attribute__((constructor)) static void take_time(void)
{
    const char *said = getenv("YOKE_TEST_LOADS_FOR"), *told = getenv("YOKE_TEST_TELL");
    const long ms = said ? atol(said) : 0;
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    if (told && write(atoi(told), "l", 1) != 1) return; /* the load is under way */
    nanosleep(&pause, NULL);
}
