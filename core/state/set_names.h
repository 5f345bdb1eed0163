// set_names.h: the names of the files of a set.
//
// A set in the place of PATH, `model.safetensors`, is
//
//   model.safetensors.index.json                      the index, PATH.index.json
//   model-0123abcd-00001-of-00002.safetensors, …      the files, with new random digits for each save
#pragma once

#include <string>
#include <string_view>

namespace yoke {

// Returns the name of the index in the place of a file. file_of_index() returns the file of an index name, or "" for
// other names.
std::string index_name(std::string_view file);
std::string_view file_of_index(std::string_view index);
bool is_index_name(std::string_view name);
// Returns whether the index belongs to other programs: `pytorch_model.bin.index.json`.
bool is_index_of_others(std::string_view name);
// Returns the name of file `i`, from 0, of `count`.
std::string shard_name(std::string_view index, std::string_view digits, size_t i, size_t count);
// Returns the digits in the name of a set's file, or "". The set must have this index, or the index of the same file
// with or without ".safetensors" at the end.
std::string_view digits_of_shard(std::string_view name, std::string_view index);
// Returns whether a name marks the file as a part of a set of several files, Yoke's or other programs'.
bool is_one_of_several(std::string_view name);

}  // namespace yoke
