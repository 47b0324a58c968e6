// E[P_c] h(P_c+): `beta.fit` and `beta._entropy_by_series` of balent to the letter, in registers.
#pragma once

#include "level.hpp"
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
    const Vec<double> part = (e + (j - 0.5)) * log<double>(y) - (e + j) * (0.5 * u + t * digamma) + u * entropy;
    if (!any<double>(low)) return part;  // the usual case for b and a + b
    Vec<double> product = all<double>(1), slope = zero;
    const Vec<double> z = low ? x : all<double>(kSteps);
#pragma GCC unroll 10
    for (int step = 0; step < kSteps; ++step) {
        slope = slope * (z + double(step)) + product;
        product = product * (z + double(step));
    }
    const Vec<double> steps = (z - j) * slope / product - log<double>(product) - double(kSteps);
    return part + (low ? steps : zero);
}

inline Vec<double> plus_entropy(Vec<double> a, Vec<double> b) {
    return log_gamma_part(a + 1.0, 1) + log_gamma_part(b, 1) - log_gamma_part(a + 1.0 + b, 2) + kHalfLog2PiE;
}

inline Vec<double> smaller(Vec<double> x, Vec<double> y) { return x < y ? x : y; }
inline Vec<double> larger(Vec<double> x, Vec<double> y) { return x > y ? x : y; }

// E[P] h(P+) of each class; `near` gathers those so near Beta(1, 1) that the entropy loses its relative accuracy.
inline Vec<double> weighted_entropy(Vec<double> mean, Vec<double> var, Vec<double> within, double floor, double width,
                                    Int<double>& near) {
    constexpr double eps = 2.220446049250313e-16;
    const Vec<double> tiny = all<double>(Traits<double>::tiny), large = 1.0 / tiny;
    const Vec<double> rest = mean > 0.5 ? (within + var) / mean : 1.0 - mean;
    const Vec<double> least = eps * smaller(mean, rest), spread = larger(var, least * least);
    const Vec<double> ratio = spread > 0.0 ? within / spread : large;
    const Vec<double> total = smaller(larger(ratio, all<double>(floor)), large);
    const Vec<double> a = mean * total, b = larger(rest, tiny) * total;
    near |= (a < width) & (b > 1 - width) & (b < 1 + width);
    return mean * plus_entropy(a, b);
}

// E[P] h(P+) for elements begin..end of the flat arrays; false where one is near Beta(1, 1), and the caller should
// take the careful way.
bool posterior_range(const Output& m, double* out, double floor, double width, int64_t begin, int64_t end) {
    constexpr int L = lanes<double>;
    Int<double> near{};
    int64_t i = begin;
    for (; i + L <= end; i += L)
        store<double>(out + i, weighted_entropy(load(m.mean + i), load(m.var + i), load(m.within + i), floor, width, near));
    if (i < end) {  // beyond the end: mean 0, which adds nothing
        double last[4][L] = {};
        for (int k = 0; i + k < end; ++k)
            last[0][k] = m.mean[i + k], last[1][k] = m.var[i + k], last[2][k] = m.within[i + k];
        store<double>(last[3], weighted_entropy(load(last[0]), load(last[1]), load(last[2]), floor, width, near));
        for (int k = 0; i + k < end; ++k) out[i + k] = last[3][k];
    }
    return !any<double>(near);
}

}  // namespace
