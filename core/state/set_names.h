// set_names.h: the names of the files of a set.
//
// A set that stands in the place of PATH, `model.safetensors`, is
//
//   model.safetensors.index.json                      its index, PATH.index.json
//   model-0123abcd-00001-of-00002.safetensors, …      its files, under digits that each save draws anew
#pragma once

#include <string>
#include <string_view>

namespace yoke {

// Return the name of the index that stands in the place of a file, and of that file; "" where it is no index's name.
std::string index_name(std::string_view file);
std::string_view file_of_index(std::string_view index);
bool is_index_name(std::string_view name);
// Returns whether other programs than those of this format read the index: `pytorch_model.bin.index.json`.
bool is_index_of_others(std::string_view name);
// Returns the name of file `i`, from 0, of `count`.
std::string shard_name(std::string_view index, std::string_view digits, size_t i, size_t count);
// The digits in such a name; "" where it is none of a set with that index, or with that of the same file with or
// without ".safetensors" at its end.
std::string_view digits_of_shard(std::string_view name, std::string_view index);
// Whether a name says that the file is one of several, ours or others'.
bool is_one_of_several(std::string_view name);

}  // namespace yoke
