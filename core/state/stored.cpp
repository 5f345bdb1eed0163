#include "core/state/stored.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/state/other_formats.h"

#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <utility>

namespace yoke {

// ---- A file -----------------------------------------------------------------------------------------------------

StoredFile::StoredFile(ReadFile file, std::string name, std::string shown)
    : name_(std::move(name)),
      path_(std::move(shown)),
      file_(std::move(file)),
      header_bytes_(read_length()),
      stored_(read_header())
{
}

uint64_t StoredFile::read_length() const
{
    if (file_.size() < kLengthBytes)
        fail(
            YOKE_E_CHECKPOINT,
            "%s: the file has %llu bytes; a safetensors file begins with 8 bytes for its header's length",
            path(), static_cast<unsigned long long>(file_.size()));
    char bytes[kTellingBytes];
    const auto known = static_cast<size_t>(std::min<uint64_t>(sizeof bytes, file_.size()));
    file_.read(0, bytes, known);
    uint64_t length = 0;
    for (size_t i = 0; i < kLengthBytes; ++i)
        length |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
    const bool fits = length <= kMostHeader && length <= file_.size() - kLengthBytes;
    if (!fits || known == kLengthBytes || bytes[kLengthBytes] != '{')
        check_no_other({bytes, known});
    if (fits) return length;
    std::string problem = format(
        "%s: the file is not a safetensors file, or is cut short (header size %llu, limit %llu, file size %llu); give a file that save() wrote",
        path(), static_cast<unsigned long long>(length),
        static_cast<unsigned long long>(kMostHeader),
        static_cast<unsigned long long>(file_.size()));
    // The end of a file does not change its first bytes.
    if (length > kMostHeader) fail_no_state(std::move(problem));
    throw Error(YOKE_E_CHECKPOINT, std::move(problem));
}

void StoredFile::check_no_other(std::string_view first_bytes) const
{
    if (const OtherFormat *other = other_format(first_bytes))
        fail_no_state(format("%s: the file is not a safetensors file, but %s: %s", path(),
                             other->name, other->advice));
}

StoredTensors StoredFile::read_header() const
{
    std::string header(header_bytes_, '\0');
    file_.read(kLengthBytes, header.data(), header.size());
    return StoredTensors::read(header, file_.size(), path());
}

// ---- The files of a set -----------------------------------------------------------------------------------------

namespace {

// Number of tries. Between two tries, the index may also go, if a file replaces the set or a set replaces the file.
constexpr int kMostTries = 20;

// Returns how many files of a set stay open: a quarter of the process's limit, at most 64. A process may have 1,024
// files of any kind, or fewer.
size_t most_open()
{
    constexpr rlim_t kMost = 64, kShare = 4;
    struct rlimit limit {};
    const bool is_known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    return is_known ? std::min(kMost, limit.rlim_cur / kShare) : kMost;
}

// Error for a missing file of a set. A set may be saved anew between the reads of its index and its files; the former
// files are gone then.
struct MissingShard : Error {
    using Error::Error;
};

std::string real_folder_of(const char *call, const std::string &path)
{
    std::string real;
    if (file_calls().real_path(path.c_str(), &real) != 0) fail_io(call, "open", path, errno);
    return real;
}

bool leads_out(std::string_view name)
{
    if (name.starts_with('/')) return true;
    for (size_t at = 0; at <= name.size();) {
        const size_t end = std::min(name.find('/', at), name.size());
        if (name.substr(at, end - at) == "..") return true;
        at = end + 1;
    }
    return false;
}

bool is_inside(const std::string &folder, const std::string &real)
{
    return real.starts_with(folder == "/" ? folder : folder + "/");
}

// Folders for the files of a set: the folder of the index, and the folder of the link's target if the index is a
// link. A cache of downloads has links in one folder and all files in another.
class ShardFolders {
public:
    ShardFolders(const char *call, std::string index) : call_(call), index_(std::move(index))
    {
        const std::string folder = place_of(index_).folder;
        real_ = {real_folder_of(call, folder), place_of(real_folder_of(call, index_)).folder};
        folders_ = {folder};
        if (real_[1] != real_[0]) folders_.push_back(real_[1]);
    }
    // Opens a file of the set, in the first folder with a file of this name. `tensor`: a tensor of the file, for
    // messages. Raises MissingShard if no folder has the file, and YOKE_E_CHECKPOINT if the name leads out of the
    // folders.
    StoredFile open(const std::string &name, std::string_view tensor) const;

private:
    void check_name(const std::string &name, std::string_view tensor) const;
    bool is_allowed(const std::string &real) const
    {
        return std::ranges::any_of(
            real_, [&](const std::string &folder) { return is_inside(folder, real); });
    }

    const char *call_;
    std::string index_;
    std::vector<std::string> folders_, real_;
};

void ShardFolders::check_name(const std::string &name, std::string_view tensor) const
{
    const char *why = name.empty()                           ? "has no name"
                      : name.find('\0') != std::string::npos ? "has a NUL in its name"
                      : leads_out(name)                      ? "leads out of the set's folder"
                                                             : nullptr;
    if (why)
        fail(YOKE_E_CHECKPOINT, "%s: the file '%s', where tensor '%s' should be, %s",
             index_.c_str(), shown_name(name).c_str(), shown_name(tensor).c_str(), why);
}

StoredFile ShardFolders::open(const std::string &name, std::string_view tensor) const
{
    check_name(name, tensor);
    for (const std::string &folder : folders_) {
        const std::string path = folder + "/" + name;
        std::string real;
        if (file_calls().real_path(path.c_str(), &real) != 0) {
            if (errno != ENOENT && errno != ENOTDIR) fail_io(call_, "open", path, errno);
            continue;
        }
        if (!is_allowed(real))
            fail(
                YOKE_E_CHECKPOINT,
                "%s: the file '%s' of tensor '%s' is a link out of the set's folder, to '%s'; put the file itself there",
                index_.c_str(), shown_name(name).c_str(), shown_name(tensor).c_str(), real.c_str());
        return StoredFile(ReadFile(call_, real), name, path);
    }
    throw MissingShard(
        YOKE_E_CHECKPOINT,
        format(
            "%s: the file '%s' of the set, with tensor '%s', is missing; fetch or copy all files of the set",
            index_.c_str(), shown_name(name).c_str(), shown_name(tensor).c_str()));
}

}  // namespace

// ---- The state at a path ----------------------------------------------------------------------------------------

Stored Stored::open(const std::string &path, const std::function<void(const ReadFile &)> &check,
                    const char *call)
{
    std::string before;
    for (int tries = 1;; ++tries) {
        FoundState found;
        try {
            found = find_state(path, call);
            if (check) check(*found.file);
            return found.is_index ? of_set(found, call) : of_file(std::move(found));
        } catch (const MissingShard &) {
            if (found.index == before || tries == kMostTries) throw;
        } catch (const Error &error) {
            if (error.native_code() != ENOENT || tries == kMostTries) throw;
        }
        before = std::move(found.index);
    }
}

Stored Stored::of_file(FoundState found)
{
    Stored made;
    made.files_.emplace_back(std::move(*found.file), place_of(found.path).name, found.path);
    for (const StoredTensors::Tensor &tensor : made.files_[0].stored().tensors())
        made.tensors_.push_back({0, &tensor});
    made.path_ = std::move(found.path);
    return made;
}

Stored Stored::of_set(const FoundState &found, const char *call)
{
    Stored made;
    made.path_ = found.path;
    made.index_bytes_ = found.index.size();
    const SetIndex &index = made.index_.emplace(SetIndex::read(found.index, made.path()));
    const ShardFolders folders(call, made.path_);
    std::vector<std::string_view> tensors(index.file_count());  // a tensor of each file
    for (const SetIndex::Entry &entry : index.entries()) tensors[entry.file] = index.name(entry);
    const size_t most = most_open();
    for (size_t i = 0; i < index.file_count(); ++i) {
        made.files_.push_back(folders.open(std::string(index.file(i)), tensors[i]));
        if (i >= most) made.files_.back().rest();
    }
    made.place_by_index();
    return made;
}

void Stored::place_by_index()
{
    std::vector<Place> all;
    for (uint32_t i = 0; i < files_.size(); ++i)
        for (const StoredTensors::Tensor &tensor : files_[i].stored().tensors())
            all.push_back({i, &tensor});
    const auto name_of = [&](const Place &place) { return name(place); };
    std::ranges::sort(all, {}, name_of);
    const auto twice = std::ranges::adjacent_find(all, {}, name_of);
    if (twice != all.end())
        fail(YOKE_E_CHECKPOINT, "%s: tensor '%s' is in two files of the set, '%s' and '%s'", path(),
             shown_name(name(*twice)).c_str(), shown_name(file(twice[0]).name()).c_str(),
             shown_name(file(twice[1]).name()).c_str());
    for (const SetIndex::Entry &entry : index_->entries()) {
        const auto place = std::ranges::lower_bound(all, index_->name(entry), {}, name_of);
        const bool is_known = place != all.end() && name(*place) == index_->name(entry);
        if (!is_known || place->file != entry.file)
            fail(YOKE_E_CHECKPOINT, "%s: tensor '%s' should be in '%s', but is not there%s%s",
                 path(), shown_name(index_->name(entry)).c_str(),
                 shown_name(index_->file(entry.file)).c_str(),
                 is_known ? "; the tensor is in " : "",
                 is_known ? shown_name(file(*place).name()).c_str() : "");
        tensors_.push_back(*place);
    }
    std::ranges::sort(tensors_, {}, [](const Place &p) { return std::pair(p.file, p.tensor); });
}

size_t Stored::metadata_count() const
{
    return index_ ? index_->metadata_count() : files_[0].stored().metadata_count();
}

std::pair<std::string_view, std::string_view> Stored::metadata(size_t i) const
{
    return index_ ? index_->metadata(i) : files_[0].stored().metadata(i);
}

std::string_view Stored::metadata(std::string_view key) const
{
    for (size_t i = 0; i < metadata_count(); ++i)
        if (metadata(i).first == key) return metadata(i).second;
    return {};
}

}  // namespace yoke
