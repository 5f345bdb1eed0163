#include "kernels/cpu/comm/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

namespace yoke::cpu::comm {

Mapping &Mapping::operator=(Mapping &&other) noexcept
{
    if (this == &other) return *this;
    reset();
    data_ = other.data_;
    bytes_ = other.bytes_;
    generation_ = other.generation_;
    other.data_ = nullptr;
    other.bytes_ = 0;
    return *this;
}

void Mapping::reset()
{
    if (data_ && generation_ == generation()) munmap(data_, bytes_);
    data_ = nullptr;
    bytes_ = 0;
}

size_t page_bytes()
{
    return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

static Descriptor make_file()
{
    return Descriptor::made(
        [] { return memfd_create("yoke-comm", MFD_CLOEXEC | MFD_ALLOW_SEALING); });
}

// Returns YOKE_E_OOM if the limit on the size of files does not allow so many bytes. Beyond the limit, the system
// does not only refuse the bytes, but ends the process with SIGXFSZ.
static yoke_status check_file_limit(size_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
        bytes <= limit.rlim_cur)
        return YOKE_OK;
    return fail(
        YOKE_E_OOM,
        "cpu: the ranks of this machine need %zu bytes of shared memory, but RLIMIT_FSIZE allows only %llu; raise `ulimit -f`, or set YOKE_COMM_SHM=0 to connect the ranks over TCP",
        bytes, (unsigned long long)limit.rlim_cur);
}

yoke_status make_shared(size_t bytes, Descriptor *out)
{
    if (yoke_status status = check_file_limit(bytes)) return status;
    Descriptor fd = make_file();
    if (!fd)
        return fail_system(
            errno == EMFILE || errno == ENFILE ? YOKE_E_IO : YOKE_E_OOM,
            "cpu: memfd_create cannot create a descriptor for %zu bytes of shared memory; raise `ulimit -n`, or give the machine more memory",
            bytes);
    int code;
    do code = posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
    while (code == EINTR);
    errno = code;
    if (code || fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        return fail_system(YOKE_E_OOM, "cpu: cannot allocate %zu bytes of shared memory", bytes);
    *out = static_cast<Descriptor &&>(fd);
    return YOKE_OK;
}

bool can_share()
{
    return static_cast<bool>(make_file());
}

yoke_status map_shared(int fd, size_t offset, size_t bytes, Mapping *out)
{
    void *data =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(offset));
    if (data == MAP_FAILED)
        return fail_system(YOKE_E_OOM, "cpu: cannot map %zu bytes of shared memory", bytes);
    madvise(data, bytes, MADV_DONTFORK);
    *out = Mapping(data, bytes);
    return YOKE_OK;
}

yoke_status map_mirrored(int fd, size_t offset, size_t bytes, Mapping *out)
{
    void *room = mmap(nullptr, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return fail_system(YOKE_E_OOM, "cpu: cannot reserve %zu bytes of addresses", 2 * bytes);
    Mapping mapping(room, 2 * bytes);
    for (int half = 0; half < 2; ++half) {
        char *at = mapping.data() + half * bytes;
        if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                 static_cast<off_t>(offset)) == MAP_FAILED)
            return fail_system(YOKE_E_OOM, "cpu: cannot map %zu bytes of shared memory", bytes);
    }
    madvise(room, 2 * bytes, MADV_DONTFORK);
    *out = static_cast<Mapping &&>(mapping);
    return YOKE_OK;
}

Inherited *Inherited::first_ = nullptr;

Inherited::~Inherited()
{
    if (!data_ || generation_ != generation()) return;
    const Unforked unforked;
    Inherited **place = &first_;
    while (*place != this) place = &(*place)->next_;
    *place = next_;
}

void Inherited::keep(Descriptor file, const Mapping &mapping)
{
    file_ = static_cast<Descriptor &&>(file);
    data_ = mapping.data();
    bytes_ = mapping.bytes();
    const Unforked unforked;
    generation_ = generation();
    next_ = first_;
    first_ = this;
}

// Maps all kept memory at its addresses, as private copies. If a mapping fails, an access ends the child, as for
// memory that is not kept.
void Inherited::map_in_child()
{
    for (const Inherited *each = first_; each; each = each->next_)
        mmap(each->data_, each->bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE,
             each->file_.get(), 0);
    first_ = nullptr;
}

}  // namespace yoke::cpu::comm
