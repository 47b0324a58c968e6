// A linear map behind a dropout whose masks differ by point: what each unit contributes is computed once, and a draw
// takes off what it drops (or adds up what it keeps, if that is less). Masks are hashed on the way and never stored.
#pragma once

#include <vector>

#include "masks.hpp"
#include "simd.hpp"

namespace {

// to = from + sign · the rows that are listed, B vectors wide.
template <int B> inline void add_rows(const float* rows, int64_t width, const int32_t* listed, int64_t n, float sign,
                                      const float* from, float* to) {
    constexpr int L = lanes<float>;
    Vec<float> sums[B] = {};
    for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 8
        for (int k = 0; k < B; ++k) sums[k] += load(rows + listed[i] * width + k * L);
#pragma GCC unroll 8
    for (int k = 0; k < B; ++k) store(to + k * L, load(from + k * L) + sums[k] * sign);
}

void add_all_rows(const float* rows, int64_t width, const int32_t* listed, int64_t n, float sign, const float* from,
                  float* to) {
    constexpr int L = lanes<float>;
    int64_t at = 0;
    for (; at + 8 * L <= width; at += 8 * L) add_rows<8>(rows + at, width, listed, n, sign, from + at, to + at);
    for (; at + 4 * L <= width; at += 4 * L) add_rows<4>(rows + at, width, listed, n, sign, from + at, to + at);
    for (; at < width; at += L) add_rows<1>(rows + at, width, listed, n, sign, from + at, to + at);
}

// Points begin..end.
void thinned_range(const ThinnedData& x, const Thinned& s, int64_t begin, int64_t end) {
    std::vector<float> rows(s.units * s.width), base(s.width), mask(s.units);
    std::vector<int32_t> active(s.units), listed(s.units);
    for (int64_t point = begin; point < end; ++point) {
        int32_t n = 0;  // units that are not 0: half of them, behind a ReLU
        std::memcpy(base.data(), x.bias, s.width * sizeof(float));
        for (int32_t unit = 0; unit < s.units; ++unit) {
            const float value = x.values[point * s.units + unit];
            if (value == 0) continue;
            active[n] = unit;
            for (int64_t k = 0; k < s.width; ++k) rows[n * s.width + k] = value * x.weight[unit * s.width + k];
            if (s.drop)
                for (int64_t k = 0; k < s.width; ++k) base[k] += rows[n * s.width + k];
            ++n;
        }
        for (int64_t d = 0; d < s.draws; ++d) {
            kept_range(x.keys + d * s.points + point, mask.data(), s.units, s.threshold, 0, 1);
            int64_t count = 0;
            for (int32_t i = 0; i < n; ++i) {
                listed[count] = i;
                count += (mask[active[i]] == 0) == s.drop;
            }
            add_all_rows(rows.data(), s.width, listed.data(), count, s.drop ? -1.0f : 1.0f, base.data(),
                         x.out + (point * s.draws + d) * s.width);
        }
    }
}

}  // namespace
