// A convolution between two dropouts of channels, max-pooling, a pointwise function, and a linear map: all draws of a
// point together. What each input channel contributes is computed once, a draw adds up those it keeps, only for the
// output channels that it keeps too, and nothing larger than the cache is written in between.
#pragma once

#include <vector>

#include "simd.hpp"

namespace {

constexpr int kTogether = 4;                              // output channels, and draws, at a time
constexpr int kWide = BALENT_BYTES == 64 ? 4 : 2;         // vectors of units at a time: what registers hold
constexpr int kLanes = lanes<float>;

// The pixels behind each place: [in, side · side, padded], a row for each shift that kernel and window can have.
void shifts(const float* image, const Convolution& s, int64_t side, int64_t padded, float* to) {
    const int64_t high = s.high(), wide = s.wide();
    for (int64_t c = 0; c < s.in; ++c, image += s.height * s.width)
        for (int64_t shift = 0; shift < side * side; ++shift, to += padded) {
            const float* corner = image + shift / side * s.width + shift % side;
            for (int64_t i = 0; i < high; ++i)
                for (int64_t j = 0; j < wide; ++j) to[i * wide + j] = corner[(i * s.width + j) * s.pool];
        }
}

// What every input channel contributes to some output channels: [in, together, window, padded].
template <int P> void contributions(const float* shifted, const float* weight, const Convolution& s, int64_t side, int64_t padded, float* to) {
    for (int64_t c = 0; c < s.in; ++c, to += kTogether * P * P * padded)
        for (int64_t at = 0; at < padded; at += kLanes) {
            Vec<float> sums[kTogether][P * P] = {};
            for (int64_t tap = 0; tap < s.kernel * s.kernel; ++tap) {
                const float* w = weight + (c * s.kernel * s.kernel + tap) * s.padded_out();
                const float* from = shifted + (c * side * side + tap / s.kernel * side + tap % s.kernel) * padded + at;
#pragma GCC unroll 16
                for (int place = 0; place < P * P; ++place) {
                    const Vec<float> pixels = load(from + (place / P * side + place % P) * padded);
#pragma GCC unroll 4
                    for (int o = 0; o < kTogether; ++o) sums[o][place] += pixels * w[o];
                }
            }
            for (int o = 0; o < kTogether; ++o)
                for (int place = 0; place < P * P; ++place) store(to + (o * P * P + place) * padded + at, sums[o][place]);
        }
}

// The sums over the channels that are listed, for each place in a window; the largest of them.
template <int W> inline Vec<float> largest_sum(const float* from, int64_t stride, int64_t padded,
                                               const int32_t* channel, int64_t n) {
    Vec<float> sums[W] = {};
    for (int64_t i = 0; i < n; ++i)
#pragma GCC unroll 16
        for (int w = 0; w < W; ++w) sums[w] += load(from + channel[i] * stride + w * padded);
    Vec<float> best = sums[0];
#pragma GCC unroll 16
    for (int w = 1; w < W; ++w) best = (best > sums[w]) | (best != best) ? best : sums[w];  // NaN stays NaN
    return best;
}

// What is listed of a row of masks: the positions of those kept.
inline int32_t list_kept(const float* kept, int64_t n, int64_t stride, int32_t* listed) {
    int32_t count = 0;
    for (int32_t i = 0; i < n; ++i)
        if (kept[i * stride] != 0) listed[count++] = i;
    return count;
}

// out[draw, :] += x[i, :] · weight [places, units] for D listed draws; kWide vectors of units at a time.
template <int D> inline void add_products(const float* x, const float* weight, const int32_t* draw, int64_t places,
                                          int64_t padded, int64_t units, float* out) {
    for (int64_t unit = 0; unit < units; unit += kLanes * kWide) {
        Vec<float> sums[D][kWide];
#pragma GCC unroll 4
        for (int d = 0; d < D; ++d)
#pragma GCC unroll 4
            for (int k = 0; k < kWide; ++k) sums[d][k] = load(out + draw[d] * units + unit + k * kLanes);
        for (int64_t place = 0; place < places; ++place)
#pragma GCC unroll 4
            for (int k = 0; k < kWide; ++k) {
                const Vec<float> w = load(weight + place * units + unit + k * kLanes);
#pragma GCC unroll 4
                for (int d = 0; d < D; ++d) sums[d][k] += w * x[d * padded + place];
            }
#pragma GCC unroll 4
        for (int d = 0; d < D; ++d)
#pragma GCC unroll 4
            for (int k = 0; k < kWide; ++k) store(out + draw[d] * units + unit + k * kLanes, sums[d][k]);
    }
}

template <int P> void convolved_of(const ConvolutionData& x, const Convolution& s, int64_t begin, int64_t end) {
    const int64_t places = s.high() * s.wide(), padded = (places + kLanes - 1) / kLanes * kLanes;
    const int64_t side = s.kernel + P - 1, stride = kTogether * P * P * padded, masks = s.per_point ? s.points : 1;
    std::vector<float> shifted(s.in * side * side * padded), own(s.in * stride), pooled(s.draws * padded);
    std::vector<int32_t> listed(s.draws * s.in), count(s.draws), draws(s.draws);
    for (int64_t point = begin; point < end; ++point) {
        const int64_t mask = s.per_point ? point : 0;
        for (int64_t d = 0; d < s.draws; ++d)
            count[d] = list_kept(x.kept + (d * masks + mask) * s.in, s.in, 1, &listed[d * s.in]);
        shifts(x.images + point * s.in * s.height * s.width, s, side, padded, shifted.data());
        float* out = x.out + point * s.draws * s.units;
        for (int64_t d = 0; d < s.draws; ++d) std::memcpy(out + d * s.units, x.linear_bias, s.units * sizeof(float));
        for (int64_t o = 0; o < s.out; ++o) {
            if (o % kTogether == 0)
                contributions<P>(shifted.data(), x.weight + o, s, side, padded, own.data());
            const float* from = own.data() + o % kTogether * P * P * padded;
            const int64_t n = list_kept(x.after + mask * s.out + o, s.draws, masks * s.out, draws.data());
            for (int64_t i = 0; i < n; ++i)
                for (int64_t at = 0; at < padded; at += kLanes) {
                    const int32_t d = draws[i];
                    const Vec<float> v = largest_sum<P * P>(from + at, stride, padded, &listed[d * s.in], count[d]) + x.bias[o];
                    store(&pooled[i * padded + at], v > Vec<float>{} ? v : v * s.slope);
                }
            const float* weight = x.linear + o * places * s.units;
            int64_t i = 0;
            for (; i + kTogether <= n; i += kTogether)
                add_products<kTogether>(&pooled[i * padded], weight, &draws[i], places, padded, s.units, out);
            for (; i < n; ++i) add_products<1>(&pooled[i * padded], weight, &draws[i], places, padded, s.units, out);
        }
    }
}

// Points begin..end; false where the pooling window is larger than what is compiled.
bool convolved_range(const ConvolutionData& x, const Convolution& s, int64_t begin, int64_t end) {
    const auto run = s.pool == 1 ? convolved_of<1> : s.pool == 2 ? convolved_of<2> : s.pool == 3 ? convolved_of<3> : nullptr;
    if (run) run(x, s, begin, end);
    return run != nullptr;
}

}  // namespace
