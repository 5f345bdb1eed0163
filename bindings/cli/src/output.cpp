#include "bindings/cli/src/output.h"

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>

namespace yoke::cli {

void hold_standard_streams()
{
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            // open() gives the lowest free number: this stream's. A read gives end of file, a write an error.
            static_cast<void>(open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY));
}

void flush_output()
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout)) return;
    // An earlier failed write left its mark on the stream, but no errno.
    const std::string why = errno ? std::string(": ") + strerror(errno) : "";
    throw std::runtime_error("stdout could not be written" + why + "; the output is incomplete");
}

}  // namespace yoke::cli
