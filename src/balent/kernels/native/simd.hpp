// Vectors of as many lanes as the instruction set has, and exp and log on them.
//
// GCC and Clang compile arithmetic on vector_size types to whatever the target offers, so this one
// source serves SSE2, AVX2, AVX-512 and NEON. Everything is in an unnamed namespace: the file is
// compiled once per instruction set, and no copy may stand in for another at link time.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX512F__)
#define BALENT_BYTES 64
#elif defined(__AVX2__)
#define BALENT_BYTES 32
#else
#define BALENT_BYTES 16
#endif

namespace {

template <class T> struct Traits;

template <> struct Traits<float> {
    typedef float Vec __attribute__((vector_size(BALENT_BYTES)));
    typedef int32_t Int __attribute__((vector_size(BALENT_BYTES)));
    static constexpr int mantissa = 23, exp_terms = 6, log_terms = 5;
    static constexpr float magic = 12582912.0f;  // 1.5·2^23: adding it rounds to a whole number
    static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
    static constexpr float lowest = -88.0f;  // 2^-127 has no bits left: exp of this and less is 0
    static constexpr float tiny = 1.1754943508e-38f;
    static constexpr int32_t root_half = 0x3f3504f3, magic_bits = 0x4b400000, bias = 127;
};

template <> struct Traits<double> {
    typedef double Vec __attribute__((vector_size(BALENT_BYTES)));
    typedef int64_t Int __attribute__((vector_size(BALENT_BYTES)));
    static constexpr int mantissa = 52, exp_terms = 13, log_terms = 11;
    static constexpr double magic = 6755399441055744.0;  // 1.5·2^52
    static constexpr double ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
    static constexpr double lowest = -709.0;
    static constexpr double tiny = 2.2250738585072014e-308;
    static constexpr int64_t root_half = 0x3fe6a09e667f3bcd, magic_bits = 0x4338000000000000, bias = 1023;
};

template <class T> using Vec = typename Traits<T>::Vec;
template <class T> using Int = typename Traits<T>::Int;
template <class T> constexpr int lanes = BALENT_BYTES / int(sizeof(T));

template <class T> inline Vec<T> load(const T* from) {
    Vec<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class T> inline void store(T* to, Vec<T> v) { std::memcpy(to, &v, sizeof v); }

template <class T> inline Vec<T> all(T x) { return Vec<T>{} + x; }

template <class To, class From> inline To bits(From x) {
    static_assert(sizeof(To) == sizeof(From));
    To y;
    std::memcpy(&y, &x, sizeof y);
    return y;
}

template <class T> inline bool any(Int<T> mask) {
    auto found = mask[0];
    for (int i = 1; i < lanes<T>; ++i) found |= mask[i];
    return found != 0;
}

template <class T, class F> inline T fold(Vec<T> v, F both) {
    T x[lanes<T>];
    store<T>(x, v);
#pragma GCC unroll 8
    for (int half = lanes<T> / 2; half > 0; half /= 2)
        for (int i = 0; i < half; ++i) x[i] = both(x[i], x[i + half]);
    return x[0];
}

template <class T> inline T sum(Vec<T> v) {
    return fold<T>(v, [](T x, T y) { return x + y; });
}

template <class T> inline T largest(Vec<T> v) {
    return fold<T>(v, [](T x, T y) { return x > y ? x : y; });
}

constexpr double kInverseFactorial[] = {
    1,          1,           1.0 / 2,      1.0 / 6,        1.0 / 24,        1.0 / 120,        1.0 / 720,
    1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};

// exp(x) for lowest <= x <= 0 by Taylor's series after x = n ln 2 + r, |r| <= ½ ln 2. NaN stays NaN.
template <class T> inline Vec<T> exp(Vec<T> x) {
    using Tr = Traits<T>;
    const Vec<T> shifted = x * T(1.4426950408889634) + Tr::magic;
    const Vec<T> n = shifted - Tr::magic;
    const Vec<T> r = x - n * Tr::ln2_high - n * Tr::ln2_low;
    Vec<T> series = all<T>(T(kInverseFactorial[Tr::exp_terms]));
#pragma GCC unroll 16
    for (int k = Tr::exp_terms - 1; k >= 0; --k) series = series * r + T(kInverseFactorial[k]);
    const Int<T> power = (bits<Int<T>>(shifted) + (Tr::bias - Tr::magic_bits)) << Tr::mantissa;  // 2^n
    return series * bits<Vec<T>>(power);
}

// log(x) for normal x > 0: 2 artanh((m - 1)/(m + 1)) after x = m 2^e, √½ <= m < √2.
template <class T> inline Vec<T> log(Vec<T> x) {
    using Tr = Traits<T>;
    const Int<T> i = bits<Int<T>>(x);
    const Int<T> e = (i - Tr::root_half) >> Tr::mantissa;
    const Vec<T> m = bits<Vec<T>>(i - (e << Tr::mantissa));
    const Vec<T> exponent = bits<Vec<T>>(e + Tr::magic_bits) - Tr::magic;
    const Vec<T> t = (m - T(1)) / (m + T(1)), s = t * t;
    Vec<T> series = all<T>(T(1.0 / (2 * Tr::log_terms + 1)));
#pragma GCC unroll 16
    for (int k = Tr::log_terms - 1; k >= 0; --k) series = series * s + T(1.0 / (2 * k + 1));
    return exponent * Tr::ln2_high + (2 * t * series + exponent * Tr::ln2_low);
}

// log(1 + x) for x > -1/2, exact for tiny x: what 1 + x rounds away is put back in proportion.
template <class T> inline Vec<T> log1p(Vec<T> x) {
    const Vec<T> w = T(1) + x, lost = w - T(1), one = all<T>(1);
    return lost == Vec<T>{} ? x : log<T>(w) * (x / (lost == Vec<T>{} ? one : lost));
}

}  // namespace
