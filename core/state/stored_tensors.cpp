#include "core/state/stored_tensors.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/state/tree_text.h"

#ifndef YOKE_WITHOUT_JSON
#include <nlohmann/json.hpp>
#endif

#include <algorithm>
#include <climits>
#include <cstdio>
#include <numeric>
#include <utility>

namespace yoke {

std::pair<std::string_view, std::string_view> StoredTensors::metadata(size_t i) const
{
    const Pair &pair = metadata_[i];
    return {text(pair.key, pair.key_length), text(pair.value, pair.value_length)};
}

#ifdef YOKE_WITHOUT_JSON

StoredTensors StoredTensors::read(std::string_view, uint64_t, const char *path)
{
    fail(YOKE_E_UNSUPPORTED,
         "%s: this build cannot read safetensors, because it was built without nlohmann-json",
         path);
}

#else

// Reader of the header, called by the parser. The first of two passes counts, so that the second pass allocates the
// kept texts once.
class StoredTensors::Reader final : public nlohmann::json_sax<nlohmann::json> {
    using Json = nlohmann::json;

public:
    Reader(StoredTensors &into, const char *path) : into_(into), path_(path) {}

    // Begins the second pass: allocates memory for the counted texts, and keeps texts from now on.
    void keep()
    {
        into_.texts_.reserve(text_bytes_);
        into_.sizes_.reserve(size_count_);
        into_.tensors_.reserve(tensor_count_);
        into_.metadata_.reserve(pair_count_);
        keeps_ = true;
        tensor_count_ = 0;
    }

    bool start_object(size_t) override
    {
        if (place_ == Place::kOutside) return enter(Place::kNames);
        if (place_ == Place::kTensor) return begin_tensor();
        if (place_ == Place::kMetadataBegin) return enter(Place::kMetadata);
        return skip(+1) || refuse("an object", expected());
    }
    bool end_object() override
    {
        if (skip(-1)) return true;
        if (place_ == Place::kField) return end_tensor();
        return enter(place_ == Place::kMetadata ? Place::kNames : Place::kOutside);
    }
    bool start_array(size_t) override
    {
        if (place_ == Place::kShapeBegin) return enter(Place::kShape);
        if (place_ == Place::kOffsetsBegin) return enter(Place::kOffsets);
        return skip(+1) || refuse("an array", expected());
    }
    bool end_array() override
    {
        if (skip(-1)) return true;
        if (place_ == Place::kOffsets && offset_count_ != 2)
            broken(
                "has %llu data_offsets; there must be two, the first byte and the byte after the last",
                static_cast<unsigned long long>(offset_count_));
        return enter(Place::kField);
    }
    bool key(std::string &name) override;
    bool string(std::string &value) override;
    bool number_unsigned(uint64_t value) override;
    bool number_integer(int64_t) override { return scalar("a negative number"); }
    bool number_float(double, const std::string &) override { return scalar("another number"); }
    bool null() override { return scalar("null"); }
    bool boolean(bool) override { return scalar("true or false"); }
    bool binary(Json::binary_t &) override { return scalar("binary"); }
    bool parse_error(size_t position, const std::string &,
                     const nlohmann::detail::exception &error) override
    {
        fail(YOKE_E_CHECKPOINT, "%s: the header is not JSON at byte %zu: %s", path_, 8 + position,
             shown_name(error.what()).c_str());
    }

private:
    enum class Place {
        kOutside,
        kNames,
        kMetadataBegin,
        kMetadata,
        kTensor,  // before the tensor's object
        kField,   // before a key or the object's end
        kDtype,
        kShapeBegin,
        kShape,
        kOffsetsBegin,
        kOffsets,
        kUnknown,  // the value of a key unknown to the format
    };

    bool enter(Place place)
    {
        place_ = place;
        return true;
    }
    // Returns whether the parser is within the value of an unknown key. If so, changes the depth by `step`; the value
    // ends at depth 0.
    bool skip(int step)
    {
        if (place_ != Place::kUnknown) return false;
        unknown_depth_ += step;
        if (unknown_depth_ == 0) place_ = Place::kField;
        return true;
    }
    bool scalar(const char *what)
    {
        if (place_ != Place::kUnknown) return refuse(what, expected());
        if (unknown_depth_ == 0) place_ = Place::kField;
        return true;
    }
    const char *expected() const;
    [[noreturn]] bool refuse(const char *got, const char *wanted) const;
    template <class... Args>
    [[noreturn]] void broken(const char *format, Args... args) const;
    bool begin_tensor();
    bool end_tensor();
    uint32_t keep_text(std::string_view text);

    StoredTensors &into_;
    const char *const path_;
    bool keeps_ = false;
    Place place_ = Place::kOutside;
    int64_t unknown_depth_ = 0;
    std::string name_;  // name of the tensor, or key of the metadata
    bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false, has_metadata_ = false;
    size_t offset_count_ = 0;
    Tensor tensor_{};
    uint64_t text_bytes_ = 0, size_count_ = 0, tensor_count_ = 0, pair_count_ = 0;
};

const char *StoredTensors::Reader::expected() const
{
    switch (place_) {
        case Place::kOutside:
            return "an object of tensors";
        case Place::kMetadataBegin:
            return "an object of strings";
        case Place::kMetadata:
            return "a string";
        case Place::kTensor:
            return "an object with dtype, shape and data_offsets";
        case Place::kDtype:
            return "the name of a dtype";
        case Place::kShapeBegin:
        case Place::kOffsetsBegin:
            return "an array";
        default:
            return "a whole number from 0 to 9223372036854775807";
    }
}

bool StoredTensors::Reader::refuse(const char *got, const char *wanted) const
{
    fail(YOKE_E_CHECKPOINT, "%s: the header's '%s' has %s where %s belongs", path_,
         shown_name(name_).c_str(), got, wanted);
}

template <class... Args>
void StoredTensors::Reader::broken(const char *format, Args... args) const
{
    char rule[200];
    snprintf(rule, sizeof rule, format, args...);
    fail(YOKE_E_CHECKPOINT, "%s: tensor '%s' %s", path_, shown_name(name_).c_str(), rule);
}

uint32_t StoredTensors::Reader::keep_text(std::string_view text)
{
    text_bytes_ += keeps_ ? 0 : text.size();
    const auto begin = static_cast<uint32_t>(into_.texts_.size());
    if (keeps_) into_.texts_ += text;
    return begin;
}

bool StoredTensors::Reader::begin_tensor()
{
    has_dtype_ = has_shape_ = has_offsets_ = false;
    tensor_ = {};
    tensor_.name = keep_text(name_);
    tensor_.name_length = static_cast<uint32_t>(name_.size());
    tensor_.shape = static_cast<uint32_t>(into_.sizes_.size());
    return enter(Place::kField);
}

bool StoredTensors::Reader::end_tensor()
{
    for (const auto &[has, what] :
         {std::pair{has_dtype_, "dtype"}, {has_shape_, "shape"}, {has_offsets_, "data_offsets"}})
        if (!has) broken("has no %s", what);
    ++tensor_count_;
    if (keeps_) into_.tensors_.push_back(tensor_);
    return enter(Place::kNames);
}

bool StoredTensors::Reader::key(std::string &name)
{
    if (place_ == Place::kUnknown) return true;
    if (place_ == Place::kField) {
        bool *has = name == "dtype"          ? &has_dtype_
                    : name == "shape"        ? &has_shape_
                    : name == "data_offsets" ? &has_offsets_
                                             : nullptr;
        if (!has) return enter(Place::kUnknown);
        if (std::exchange(*has, true)) broken("has the key '%s' twice", name.c_str());
        offset_count_ = 0;
        return enter(has == &has_dtype_   ? Place::kDtype
                     : has == &has_shape_ ? Place::kShapeBegin
                                          : Place::kOffsetsBegin);
    }
    name_ = name;
    if (place_ == Place::kMetadata) return true;
    if (name != "__metadata__") return enter(Place::kTensor);
    if (std::exchange(has_metadata_, true) && !keeps_)
        fail(YOKE_E_CHECKPOINT, "%s: the header has '__metadata__' twice", path_);
    return enter(Place::kMetadataBegin);
}

bool StoredTensors::Reader::string(std::string &value)
{
    if (place_ == Place::kMetadata) {
        ++pair_count_;
        const uint32_t begin = keep_text(name_);
        const uint32_t behind = keep_text(value);
        if (keeps_)
            into_.metadata_.push_back({begin, static_cast<uint32_t>(name_.size()), behind,
                                       static_cast<uint32_t>(value.size())});
        return true;
    }
    if (place_ != Place::kDtype) return scalar("a string");
    tensor_.dtype = stored_dtype(value);
    if (!tensor_.dtype)
        broken("has the dtype '%s', which the format does not have", shown_name(value).c_str());
    return enter(Place::kField);
}

bool StoredTensors::Reader::number_unsigned(uint64_t value)
{
    if (place_ != Place::kShape && place_ != Place::kOffsets) return scalar("a number");
    if (value > INT64_MAX) return refuse("a larger number", expected());
    if (place_ == Place::kOffsets) {
        (offset_count_ ? tensor_.end : tensor_.begin) = value;
        ++offset_count_;
        return true;
    }
    ++size_count_;
    ++tensor_.ndim;
    if (keeps_) into_.sizes_.push_back(static_cast<int64_t>(value));
    return true;
}

// ---- Checks beyond JSON ---------------------------------------------------------------------------------------

namespace {

// Returns the index of a text that occurs twice among `count` texts, or `count` if all differ.
template <class TextOf>
size_t find_twice(size_t count, TextOf text)
{
    std::vector<uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, text);
    for (size_t i = 1; i < count; ++i)
        if (text(order[i]) == text(order[i - 1])) return order[i];
    return count;
}

}  // namespace

void StoredTensors::refuse(const Tensor &tensor, const std::string &rule, const char *path) const
{
    fail(YOKE_E_CHECKPOINT, "%s: tensor '%s' %s (data_offsets %llu to %llu)", path,
         shown_name(name(tensor)).c_str(), rule.c_str(),
         static_cast<unsigned long long>(tensor.begin),
         static_cast<unsigned long long>(tensor.end));
}

void StoredTensors::check_names(const char *path) const
{
    const size_t tensor = find_twice(tensors_.size(), [&](size_t i) { return name(tensors_[i]); });
    if (tensor < tensors_.size()) refuse(tensors_[tensor], "is in the header twice", path);
    const size_t pair = find_twice(metadata_.size(), [&](size_t i) { return metadata(i).first; });
    if (pair < metadata_.size())
        fail(YOKE_E_CHECKPOINT, "%s: the metadata has '%s' twice", path,
             shown_name(metadata(pair).first).c_str());
}

// Returns the bytes of a tensor by shape and dtype. Raises YOKE_E_CHECKPOINT if there are too many elements to count,
// or if the last byte is not whole.
uint64_t StoredTensors::bytes_of(const Tensor &tensor, const char *path) const
{
    uint64_t bits = 1;
    bool overflow = false;
    for (const int64_t size : shape(tensor))
        overflow |= __builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits);
    overflow |= __builtin_mul_overflow(bits, uint64_t{tensor.dtype->bits}, &bits);
    if (overflow) refuse(tensor, "has a shape with more elements than can be counted", path);
    if (bits % 8) refuse(tensor, "does not end with a whole byte", path);
    return bits / 8;
}

// Sorts the tensors into data order. Raises YOKE_E_CHECKPOINT unless the tensors cover the data without gap or
// overlap, each with the bytes of its shape and dtype.
void StoredTensors::check_data(uint64_t data_bytes, const char *path)
{
    std::ranges::sort(tensors_, {}, [](const Tensor &t) { return std::pair(t.begin, t.end); });
    uint64_t end = 0;
    for (const Tensor &tensor : tensors_) {
        if (tensor.begin != end)
            refuse(tensor,
                   format("does not begin where the previous tensor ends, at %llu",
                          static_cast<unsigned long long>(end)),
                   path);
        if (tensor.end < tensor.begin) refuse(tensor, "ends before it begins", path);
        const uint64_t bytes = bytes_of(tensor, path);
        if (tensor.end - tensor.begin != bytes)
            refuse(tensor,
                   format("takes %llu bytes by shape and dtype",
                          static_cast<unsigned long long>(bytes)),
                   path);
        end = tensor.end;
    }
    if (end != data_bytes)
        fail(YOKE_E_CHECKPOINT,
             "%s: the tensors take %llu bytes, but after the header there are %llu", path,
             static_cast<unsigned long long>(end), static_cast<unsigned long long>(data_bytes));
}

StoredTensors StoredTensors::read(std::string_view header, uint64_t file_bytes, const char *path)
{
    constexpr uint64_t kLength = 8;  // bytes of the number before
    if (header.size() > kMostHeader || file_bytes < kLength || header.size() > file_bytes - kLength)
        fail(YOKE_E_CHECKPOINT, "%s: the header has %zu bytes, of at most %llu, in a file of %llu",
             path, header.size(), static_cast<unsigned long long>(kMostHeader),
             static_cast<unsigned long long>(file_bytes));
    if (!header.starts_with('{'))
        fail(YOKE_E_CHECKPOINT, "%s: the header does not begin with '{'", path);
    check_json_text(header, "the header", kLength, path);
    StoredTensors found;
    Reader reader(found, path);
    nlohmann::json::sax_parse(header.begin(), header.end(), &reader);
    reader.keep();
    nlohmann::json::sax_parse(header.begin(), header.end(), &reader);
    found.check_names(path);
    found.check_data(file_bytes - kLength - header.size(), path);
    return found;
}

#endif

}  // namespace yoke
