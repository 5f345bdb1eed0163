#include "core/ops/equation.h"

#include "core/base/text.h"

namespace yoke::einstein {

namespace {

std::string text_of(Label label)
{
    if (label >= kEllipsis) return format("axis %d from the end of '...'", label - kEllipsis + 1);
    return format("letter '%c'", label);
}

std::string without_spaces(std::string_view text)
{
    std::string kept(text);
    std::erase(kept, ' ');
    return kept;
}

std::vector<std::string> split_at_commas(const std::string &text)
{
    std::vector<std::string> parts(1);
    for (const char c : text)
        if (c == ',')
            parts.emplace_back();
        else
            parts.back() += c;
    return parts;
}

// Returns the whole character that begins at a byte of UTF-8.
std::string character_at(const std::string &text, size_t at)
{
    size_t end = at + 1;
    while (end < text.size() && is_continuation(text[end])) ++end;
    return text.substr(at, end - at);
}

}  // namespace

Equation::Equation(std::string_view text, TensorList tensors) : text_(text)
{
    const std::string kept = without_spaces(text);
    const size_t arrow = kept.find("->");
    const std::vector<std::string> parts = split_at_commas(kept.substr(0, arrow));
    if (parts.size() != tensors.size())
        refuse(format("the equation names %zu tensors, but %zu are given", parts.size(),
                      tensors.size()));
    for (size_t i = 0; i < parts.size(); ++i) {
        Labels labels = read_operand(parts[i], i, *tensors[i]);
        terms.push_back({Tensor::share(tensors[i]), std::move(labels)});
    }
    if (arrow == std::string::npos)
        infer_result();
    else
        read_result(kept.substr(arrow + 2));
}

void Equation::check_letter(const std::string &subscripts, size_t at) const
{
    const char c = subscripts[at];
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return;
    refuse(format(
        "'%s' in \"%s\" is not a letter from a to z or A to Z; use letters, ',', '...' and one '->'",
        character_at(subscripts, at).c_str(), subscripts.c_str()));
}

// Returns the labels of the letters and of a "...", which stands for `ellipsis_axes` axes. Raises YOKE_E_VALUE for
// other characters.
Labels Equation::read(const std::string &subscripts, int ellipsis_axes) const
{
    Labels labels;
    bool seen = false;
    for (size_t i = 0; i < subscripts.size(); ++i) {
        if (subscripts.compare(i, 3, "...") != 0) {
            check_letter(subscripts, i);
            labels.push_back(subscripts[i]);
            continue;
        }
        if (seen) refuse(format("\"%s\" has '...' twice", subscripts.c_str()));
        seen = true;
        i += 2;
        for (int axis = ellipsis_axes; axis-- > 0;) labels.push_back(kEllipsis + axis);
    }
    return labels;
}

Labels Equation::read_operand(const std::string &subscripts, size_t operand, const yoke_tensor &x)
{
    const bool ellipsis = subscripts.find("...") != std::string::npos;
    const int letters = static_cast<int>(read(subscripts, 0).size());
    if (ellipsis ? letters > x.ndim : letters != x.ndim)
        refuse(format("\"%s\" names %s%d axes, but operand %zu has shape %s", subscripts.c_str(),
                      ellipsis ? "at least " : "", letters, operand, to_string(x.shape()).c_str()));
    ellipsis_axes_ = std::max(ellipsis_axes_, ellipsis ? x.ndim - letters : 0);
    return read(subscripts, x.ndim - letters);
}

void Equation::read_result(const std::string &subscripts)
{
    if (ellipsis_axes_ > 0 && subscripts.find("...") == std::string::npos)
        refuse("the result \"" + subscripts +
               "\" has no '...' for the axes of '...' in the tensors");
    result = read(subscripts, ellipsis_axes_);
    for (size_t i = 0; i < result.size(); ++i) {
        if (std::count(result.begin(), result.end(), result[i]) > 1)
            refuse(text_of(result[i]) + " occurs twice in the result");
        if (std::none_of(terms.begin(), terms.end(),
                         [&](const Term &t) { return has(t.labels, result[i]); }))
            refuse(text_of(result[i]) + " of the result is not in any tensor");
    }
}

void Equation::infer_result()
{
    Labels all;
    for (const Term &term : terms) all = joined(std::move(all), term.labels);
    for (int axis = ellipsis_axes_; axis-- > 0;) result.push_back(kEllipsis + axis);
    for (Label letter = 'A'; letter <= 'z'; ++letter)
        if (std::count(all.begin(), all.end(), letter) == 1) result.push_back(letter);
}

void Sizes::refuse(Label label, int64_t a, size_t first, int64_t b, size_t second) const
{
    fail(
        YOKE_E_VALUE,
        "einsum: equation \"%s\": %s is %lld in operand %zu and %lld in operand %zu; sizes must agree",
        equation_, text_of(label).c_str(), static_cast<long long>(a), first,
        static_cast<long long>(b), second);
}

void Sizes::add(Label label, int64_t size, size_t operand)
{
    const auto found = find(label);
    if (found == entries_.end()) return entries_.push_back({label, size, operand});
    Entry &entry = entries_[static_cast<size_t>(found - entries_.begin())];
    if (entry.size == 1) entry = {label, size, operand};  // a single element broadcasts
    if (size != entry.size && size != 1) refuse(label, entry.size, entry.operand, size, operand);
}

// Raises YOKE_E_VALUE if a label has two lengths in a single tensor: such axes do not broadcast.
void Sizes::check_diagonals(const std::vector<Term> &terms) const
{
    for (size_t i = 0; i < terms.size(); ++i)
        for (size_t a = 0; a < terms[i].labels.size(); ++a)
            for (size_t b = a + 1; b < terms[i].labels.size(); ++b)
                if (terms[i].labels[a] == terms[i].labels[b] &&
                    terms[i].x->shape_[a] != terms[i].x->shape_[b])
                    refuse(terms[i].labels[a], terms[i].x->shape_[a], i, terms[i].x->shape_[b], i);
}

}  // namespace yoke::einstein
