// h(P+), the entropy of Beta(a + 1, b): `balent.beta._entropy_by_series` to the letter, in registers.
#pragma once

#include "simd.hpp"

namespace {

constexpr int kSteps = 10;
constexpr double kBernoulli[] = {1.0 / 6,  -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                 5.0 / 66, -691.0 / 2730, 7.0 / 6,  -3617.0 / 510};
constexpr double kHalfLog2PiE = 1.4189385332046727418;

inline Vec<double> log_gamma_part(Vec<double> x, double j) {
    const auto low = x < double(kSteps);
    const Vec<double> zero{}, e = low ? all<double>(kSteps) : zero;
    const Vec<double> y = x + e, u = 1.0 / y, t = u * u;
    Vec<double> digamma = zero, entropy = zero;
#pragma GCC unroll 8
    for (int k = 8; k > 0; --k) {
        digamma = digamma * t + kBernoulli[k - 1] / (2 * k);
        entropy = entropy * t + kBernoulli[k - 1] / (2 * k - 1);
    }
    Vec<double> product = all<double>(1), slope = zero;
    const Vec<double> z = low ? x : all<double>(kSteps);
#pragma GCC unroll 10
    for (int step = 0; step < kSteps; ++step) {
        slope = slope * (z + double(step)) + product;
        product = product * (z + double(step));
    }
    const Vec<double> steps = (z - j) * slope / product - log<double>(product) - double(kSteps);
    return (e + (j - 0.5)) * log<double>(y) - (e + j) * (0.5 * u + t * digamma) + u * entropy + (low ? steps : zero);
}

inline Vec<double> plus_entropy(Vec<double> a, Vec<double> b) {
    return log_gamma_part(a + 1.0, 1) + log_gamma_part(b, 1) - log_gamma_part(a + 1.0 + b, 2) + kHalfLog2PiE;
}

// True where any lies so near Beta(1, 1) that the caller should put its Taylor series there.
bool plus_entropy_range(const double* a, const double* b, double* h, int64_t begin, int64_t end, double near) {
    constexpr int L = lanes<double>;
    Int<double> found{};
    const auto block = [&](const double* pa, const double* pb, double* ph) {
        const Vec<double> va = load(pa), vb = load(pb);
        found |= (va < near) & (vb > 1 - near) & (vb < 1 + near);
        store<double>(ph, plus_entropy(va, vb));
    };
    int64_t i = begin;
    for (; i + L <= end; i += L) block(a + i, b + i, h + i);
    if (i < end) {
        double last_a[L], last_b[L], last_h[L];
        for (int k = 0; k < L; ++k) {
            last_a[k] = i + k < end ? a[i + k] : 1;
            last_b[k] = i + k < end ? b[i + k] : 9;
        }
        block(last_a, last_b, last_h);
        for (int k = 0; i + k < end; ++k) h[i + k] = last_h[k];
    }
    bool any = false;
    for (int k = 0; k < L; ++k) any |= found[k] != 0;
    return any;
}

}  // namespace
