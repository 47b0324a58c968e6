// Dropout masks by hash: `balent.kernels.hashing.kept`, a vector of units at a time.
#pragma once

#include "simd.hpp"

namespace {

// Rows begin..end: 1 where SplitMix64 of key and unit, less its last bit, is at least the threshold.
void kept_range(const int64_t* keys, float* out, int64_t units, int64_t threshold, int64_t begin, int64_t end) {
    constexpr int L = lanes<double>;
    typedef uint64_t U __attribute__((vector_size(BALENT_BYTES)));
    constexpr uint64_t golden = 0x9E3779B97F4A7C15u;
    U step;
    for (int i = 0; i < L; ++i) step[i] = golden * (i + 1);
    for (int64_t row = begin; row < end; ++row) {
        float* to = out + row * units;
        for (int64_t unit = 0; unit < units; unit += L) {
            U z = step + (uint64_t(keys[row]) + golden * uint64_t(unit));
            z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
            z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
            z = (z ^ (z >> 31)) >> 1;
            typedef double V __attribute__((vector_size(BALENT_BYTES)));
            const V ones = __builtin_convertvector(z < uint64_t(threshold) ? U{} : U{} + 1, V);
            typedef float Half __attribute__((vector_size(BALENT_BYTES / 2)));
            const Half keep = __builtin_convertvector(ones, Half);
            std::memcpy(to + unit, &keep, (unit + L <= units ? L : units - unit) * sizeof(float));
        }
    }
}

}  // namespace
