#include "core/state/idx.h"

#include "core/state/file_calls.h"

#ifdef YOKE_WITHOUT_ZLIB
#include "core/state/plain_gz.h"
#else
#include <zlib.h>
#endif

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace yoke {

namespace {

constexpr const char *kCall = "yoke_read_idx";
constexpr uint64_t kMaxDeflateRatio = 1032;  // a deflate stream never grows by more
constexpr uint64_t kReadChunk = 1u << 30;    // gzread counts in int
constexpr unsigned kGzipBuffer = 1u << 17;

// Open file, read uncompressed.
class IdxFile {
public:
    explicit IdxFile(const char *path);
    ~IdxFile() { gzclose_r(gz_); }
    IdxFile(const IdxFile &) = delete;
    IdxFile &operator=(const IdxFile &) = delete;

    // Reads up to `bytes`; fewer only at the end of the file. Raises if the file or its compression
    // is damaged.
    uint64_t read(void *to, uint64_t bytes);
    // Reads exactly `bytes`. Raises YOKE_E_IO if the file ends before; `what` names the bytes in the message.
    void read_all(void *to, uint64_t bytes, const char *what);
    // Returns the largest possible size of the uncompressed contents: for gzip, 1032 times the file's size.
    uint64_t most_bytes() const noexcept
    {
        return gzdirect(gz_) ? file_bytes_ : file_bytes_ * kMaxDeflateRatio;
    }
    const char *path() const noexcept { return path_; }

private:
    [[noreturn]] void fail_stream(int state, int system_error, const char *text) const;

    const char *path_;
    gzFile gz_ = nullptr;
    uint64_t file_bytes_ = 0;
    uint64_t position_ = 0;
};

IdxFile::IdxFile(const char *path) : path_(path)
{
    // O_NONBLOCK: a pipe without a writer must be refused, and its open must not hang before.
    const int fd = above_standard(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (fd < 0) fail_io(kCall, "open", path, errno);
    struct stat status;
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(fd);
        if (S_ISDIR(status.st_mode)) fail_io(kCall, "read", path, EISDIR);
        fail(YOKE_E_IO, "%s: '%s' is not a regular file; write the data to a file first", kCall,
             path);
    }
    file_bytes_ = static_cast<uint64_t>(status.st_size);
    gz_ = gzdopen(fd, "rb");
    if (!gz_) {
        close(fd);
        fail(YOKE_E_OOM, "%s: not enough host memory to read '%s'", kCall, path);
    }
    gzbuffer(gz_, kGzipBuffer);
}

void IdxFile::fail_stream(int state, int system_error, const char *text) const
{
    if (state == Z_ERRNO) fail_io(kCall, "read", path_, system_error);
    if (state == Z_MEM_ERROR)
        fail(YOKE_E_OOM, "%s: not enough host memory to inflate '%s'", kCall, path_);
    const char *reason = strstr(text, ": ");  // zlib puts the number of the descriptor first
    fail(YOKE_E_IO,
         "%s: the gzip data of '%s' is damaged after %llu unpacked bytes: %s; fetch the file again",
         kCall, path_, static_cast<unsigned long long>(position_), reason ? reason + 2 : text);
}

uint64_t IdxFile::read(void *to, uint64_t bytes)
{
    uint64_t done = 0;
    while (done < bytes) {
        const auto wanted = static_cast<unsigned>(std::min(bytes - done, kReadChunk));
        const int got = gzread(gz_, static_cast<char *>(to) + done, wanted);
        const int system_error = errno;
        int state = Z_OK;
        const char *text = gzerror(gz_, &state);
        if (got > 0) position_ += static_cast<uint64_t>(got);
        if (got < 0 || state != Z_OK) fail_stream(state, system_error, text);
        if (got == 0) break;
        done += static_cast<uint64_t>(got);
    }
    return done;
}

void IdxFile::read_all(void *to, uint64_t bytes, const char *what)
{
    const uint64_t before = position_;
    const uint64_t got = read(to, bytes);
    if (got != bytes)
        fail(
            YOKE_E_IO,
            "%s: '%s' ends early: %s take %llu bytes from byte %llu on, but the file has %llu; fetch the file again",
            kCall, path_, what, static_cast<unsigned long long>(bytes),
            static_cast<unsigned long long>(before), static_cast<unsigned long long>(got));
}

struct Header {
    yoke_dtype dtype = YOKE_NONE;
    Dims shape;
};

yoke_dtype element_type(uint8_t code, const char *path)
{
    switch (code) {
        case 0x08:
            return YOKE_U8;
        case 0x09:
            return YOKE_I8;
        case 0x0C:
            return YOKE_I32;
        case 0x0D:
            return YOKE_F32;
        case 0x0E:
            return YOKE_F64;
        case 0x0B:
            fail(
                YOKE_E_VALUE,
                "%s: '%s' has int16 (type 0x0B), which Yoke does not have; convert the file to int32 (0x0C)",
                kCall, path);
        default:
            fail(
                YOKE_E_VALUE,
                "%s: '%s' has element type 0x%02X; the types of IDX are 0x08, 0x09, 0x0B, 0x0C, 0x0D and 0x0E; check whether it is an IDX file",
                kCall, path, code);
    }
}

Header read_header(IdxFile &file)
{
    uint8_t magic[4];
    file.read_all(magic, sizeof magic, "the magic number and type");
    if (magic[0] || magic[1])
        fail(YOKE_E_VALUE,
             "%s: '%s' begins with bytes %02X %02X, not with 00 00: it is not an IDX file", kCall,
             file.path(), magic[0], magic[1]);
    Header header;
    header.dtype = element_type(magic[2], file.path());
    if (magic[3] == 0 || magic[3] > YOKE_MAX_NDIM)
        fail(YOKE_E_VALUE, "%s: '%s' has %d axes; it must have 1 to %d", kCall, file.path(),
             magic[3], YOKE_MAX_NDIM);
    uint8_t sizes[4 * YOKE_MAX_NDIM];
    file.read_all(sizes, 4u * magic[3], "the sizes of the axes");
    for (int i = 0; i < magic[3]; ++i) {
        const uint8_t *s = sizes + 4 * i;
        header.shape.push_back(int64_t{s[0]} << 24 | s[1] << 16 | s[2] << 8 | s[3]);
    }
    return header;
}

void check_payload(const IdxFile &file, const Header &header)
{
    const std::string call = format("%s: '%s'", kCall, file.path());
    const auto numel = static_cast<uint64_t>(checked_numel(header.shape, call.c_str()));
    const uint64_t head = 4 + 4 * static_cast<uint64_t>(header.shape.size());
    const uint64_t bytes = numel * item_size(header.dtype);
    if (bytes > file.most_bytes() - std::min(head, file.most_bytes()))
        fail(
            YOKE_E_IO,
            "%s ends early: its header says shape %s of %s, %llu bytes in all, but the file can hold at most %llu; fetch the file again",
            call.c_str(), to_string(header.shape).c_str(), name(header.dtype),
            static_cast<unsigned long long>(head + bytes),
            static_cast<unsigned long long>(file.most_bytes()));
}

template <class Word>
void swap_bytes(void *data, int64_t count)
{
    auto *at = static_cast<Word *>(data);
    for (int64_t i = 0; i < count; ++i)
        at[i] = sizeof(Word) == 8
                    ? static_cast<Word>(__builtin_bswap64(at[i]))
                    : static_cast<Word>(__builtin_bswap32(static_cast<uint32_t>(at[i])));
}

void to_host_order(yoke_tensor &t)
{
    if (std::endian::native == std::endian::big) return;
    if (item_size(t.dtype) == 8) return swap_bytes<uint64_t>(t.data, t.numel);
    if (item_size(t.dtype) == 4) swap_bytes<uint32_t>(t.data, t.numel);
}

}  // namespace

Tensor read_idx(const char *path, Device &cpu)
{
    if (!path || !*path)
        fail(YOKE_E_VALUE, "%s: argument 'path' is %s; give the name of a file", kCall,
             path ? "empty" : "NULL");
    if (cpu.kind() != std::string_view("cpu"))
        fail(YOKE_E_VALUE, "%s: argument 'device' is %s; read to the cpu, then copy", kCall,
             cpu.name.c_str());
    IdxFile file(path);
    const Header header = read_header(file);
    check_payload(file, header);
    Tensor t = make_tensor(cpu, header.dtype, header.shape, kCall);
    file.read_all(t->data, t->nbytes(), "the elements");
    // This read also makes zlib check the sum at the end of the stream.
    char more;
    if (file.read(&more, 1))
        fail(
            YOKE_E_VALUE,
            "%s: '%s' has more bytes after the %llu bytes of its %s %s; its header or its end is damaged",
            kCall, path, static_cast<unsigned long long>(t->nbytes()),
            to_string(t->shape()).c_str(), name(t->dtype));
    to_host_order(*t);
    return t;
}

}  // namespace yoke
