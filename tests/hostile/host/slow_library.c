/* A management library that is still being loaded for as long as YOKE_TEST_LOADS_FOR says, in milliseconds, and then is
 * none. */
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

__attribute__((constructor)) static void take_time(void)
{
    const char *said = getenv("YOKE_TEST_LOADS_FOR"), *told = getenv("YOKE_TEST_TELL");
    const long ms = said ? atol(said) : 0;
    const struct timespec pause = {ms / 1000, ms % 1000 * 1000000};
    if (told && write(atoi(told), "l", 1) != 1) return; /* it is being loaded */
    nanosleep(&pause, NULL);
}
