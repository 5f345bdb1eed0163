// equation.h: an equation of einsum, read and compared with its tensors: the label and the length of each axis.
//
// Every error is YOKE_E_VALUE and names the equation, the letter or operand, and the sizes.
#pragma once

#include "core/ops/args.h"
#include "core/ops/op_def.h"

#include <algorithm>
#include <string>
#include <vector>

namespace yoke::einstein {

// Letter's code; axes of "..." are numbered from the last axis.
using Label = int;
constexpr Label kEllipsis = 256;
using Labels = std::vector<Label>;

inline bool has(const Labels &labels, Label label)
{
    return std::find(labels.begin(), labels.end(), label) != labels.end();
}

inline Labels joined(Labels labels, const Labels &more)
{
    labels.insert(labels.end(), more.begin(), more.end());
    return labels;
}

struct Term {
    Tensor x;
    Labels labels;  // by axis
};

class Equation {
public:
    Equation(std::string_view text, TensorList tensors);
    std::vector<Term> terms;
    Labels result;

private:
    [[noreturn]] void refuse(const std::string &why) const
    {
        fail(YOKE_E_VALUE, "einsum: equation \"%s\": %s", text_.c_str(), why.c_str());
    }
    void check_letter(const std::string &subscripts, size_t at) const;
    Labels read(const std::string &subscripts, int ellipsis_axes) const;
    Labels read_operand(const std::string &subscripts, size_t operand, const yoke_tensor &x);
    void read_result(const std::string &subscripts);
    void infer_result();

    const std::string text_;
    int ellipsis_axes_ = 0;  // the most that "..." stands for in any tensor
};

// Length of each label, and the operand that gave the length.
class Sizes {
public:
    Sizes(const std::vector<Term> &terms, const char *equation) : equation_(equation)
    {
        for (size_t i = 0; i < terms.size(); ++i)
            for (size_t axis = 0; axis < terms[i].labels.size(); ++axis)
                add(terms[i].labels[axis], terms[i].x->shape_[axis], i);
        check_diagonals(terms);
    }
    int64_t operator[](Label label) const { return find(label)->size; }

private:
    struct Entry {
        Label label;
        int64_t size;
        size_t operand;
    };
    std::vector<Entry>::const_iterator find(Label label) const
    {
        return std::find_if(entries_.begin(), entries_.end(),
                            [label](const Entry &e) { return e.label == label; });
    }
    void add(Label label, int64_t size, size_t operand);
    void check_diagonals(const std::vector<Term> &terms) const;
    [[noreturn]] void refuse(Label label, int64_t a, size_t first, int64_t b, size_t second) const;

    const char *equation_;
    std::vector<Entry> entries_;
};

}  // namespace yoke::einstein
