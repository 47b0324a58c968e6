// Plain buffers in and out (numpy, or torch by DLPack), the best instruction set, all cores, no GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "level.hpp"

namespace nb = nanobind;
using nb::literals::operator""_a;

extern const Level balent_level_base;
#if defined(__x86_64__)
extern const Level balent_level_avx512, balent_level_avx2;
#endif

namespace {

using In = nb::ndarray<nb::ro, nb::ndim<3>, nb::device::cpu>;
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Column = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ColumnIn = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The instruction sets that were compiled and run here, best first.
std::vector<const Level*> levels() {
    std::vector<const Level*> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        found.push_back(&balent_level_avx512);
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&balent_level_avx2);
#endif
    found.push_back(&balent_level_base);
    return found;
}

const Level& level(const std::string& name) {
    for (const Level* l : levels())
        if (name == l->name) return *l;
    throw nb::value_error(("no instruction set " + name + " here").c_str());
}

// Runs work(begin, end) over 0..size in grains, on as many threads as there is work for.
void parallel(int64_t size, int64_t grain, int threads, const std::function<void(int64_t, int64_t)>& work) {
    std::atomic<int64_t> next{0};
    auto loop = [&] {
        for (int64_t begin; (begin = next.fetch_add(grain)) < size;) work(begin, std::min(begin + grain, size));
    };
    std::vector<std::thread> others;
    for (int64_t i = 1; i < std::min<int64_t>(threads, (size + grain - 1) / grain); ++i) others.emplace_back(loop);
    loop();
    for (auto& t : others) t.join();
}

int64_t moments(In x, Matrix mean, Matrix var, Matrix within, Column entropy, bool logits, double tolerance,
                int threads, const std::string& name) {
    const Layout in{int64_t(x.shape(0)), int64_t(x.shape(1)), int64_t(x.shape(2)),
                    x.stride(0),         x.stride(1),         x.stride(2)};
    for (const Matrix& m : {mean, var, within})
        if (int64_t(m.shape(0)) != in.pool || int64_t(m.shape(1)) != in.classes)
            throw nb::value_error("outputs must be [pool, classes]");
    if (int64_t(entropy.shape(0)) != in.pool) throw nb::value_error("entropy must be [pool]");
    const bool is32 = x.dtype() == nb::dtype<float>();
    if (!is32 && x.dtype() != nb::dtype<double>()) throw nb::type_error("draws must be float32 or float64");
    const Output out{mean.data(), var.data(), within.data(), entropy.data()};
    const Level& l = level(name);
    const void* data = x.data();
    std::atomic<int64_t> first_bad{INT64_MAX};
    // About 100,000 elements are worth a thread; 16 points fill a vector where lanes are points.
    const int64_t points = 100000 / (in.draws * in.classes), lanes = in.classes < 48 ? 16 : 1;
    nb::gil_scoped_release release;
    parallel(in.pool, std::max<int64_t>(1, points / lanes) * lanes, threads,
             [&](int64_t begin, int64_t end) {
                 const int64_t bad = is32 ? l.moments32(static_cast<const float*>(data), in, out, logits, tolerance, begin, end)
                                          : l.moments64(static_cast<const double*>(data), in, out, logits, tolerance, begin, end);
                 for (int64_t seen = first_bad; bad >= 0 && bad < seen && !first_bad.compare_exchange_weak(seen, bad);) {}
             });
    return first_bad == INT64_MAX ? -1 : first_bad.load();
}

bool plus_entropy(ColumnIn a, ColumnIn b, Column h, double near, int threads, const std::string& name) {
    if (a.shape(0) != b.shape(0) || a.shape(0) != h.shape(0)) throw nb::value_error("a, b and h must have one length");
    const Level& l = level(name);
    const double *pa = a.data(), *pb = b.data();
    double* ph = h.data();
    const int64_t size = int64_t(a.shape(0));
    std::atomic<bool> found{false};
    nb::gil_scoped_release release;
    parallel(size, 8192, threads, [&](int64_t begin, int64_t end) {
        if (l.plus_entropy(pa, pb, ph, begin, end, near)) found = true;
    });
    return found;
}

}  // namespace

NB_MODULE(_native, m) {
    m.def("levels", [] {
        nb::list names;
        for (const Level* l : levels()) names.append(l->name);
        return names;
    }, "The instruction sets that were compiled and run here, best first.");
    m.def("moments", &moments, "x"_a, "mean"_a, "var"_a, "within"_a, "entropy"_a, "logits"_a, "tolerance"_a,
          "threads"_a, "level"_a,
          "Fill mean, var, within and entropy; return the first bad row as point * draws + draw, or -1.");
    m.def("plus_entropy", &plus_entropy, "a"_a, "b"_a, "h"_a, "near"_a, "threads"_a, "level"_a,
          "Fill h with the entropy of Beta(a + 1, b); is any (a + 1, b) within `near` of (1, 1)?");
}
