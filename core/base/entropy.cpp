#include "core/base/entropy.h"

#include "core/base/error.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>

namespace yoke {

uint64_t unguessable_number()
{
    uint64_t number = 0;
    ssize_t drawn;
    do {
        drawn = getrandom(&number, sizeof number, 0);
    } while (drawn < 0 && errno == EINTR);
    if (drawn != sizeof number)
        fail(YOKE_E_IO, "the system gives no random numbers: %s", strerror(errno));
    return number;
}

}  // namespace yoke
