// Plain buffers in and out (numpy, or torch by DLPack), the best instruction set, all cores, no GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <dlfcn.h>

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

// Runs body() on so many threads at once. Torch's own threads are taken where its OpenMP is loaded: they
// wait for work in a busy loop, and would fight for the cores with threads of ours.
void on_threads(int threads, const std::function<void()>& body) {
    using Fork = void (*)(void (*)(void*), void*, unsigned, unsigned);
    static const Fork fork = reinterpret_cast<Fork>(dlsym(RTLD_DEFAULT, "GOMP_parallel"));
    const auto call = [](void* f) { (*static_cast<const std::function<void()>*>(f))(); };
    if (threads <= 1) return body();
    if (fork) return fork(call, const_cast<void*>(static_cast<const void*>(&body)), unsigned(threads), 0);
    std::vector<std::thread> others;
    for (int i = 1; i < threads; ++i) others.emplace_back(body);
    body();
    for (auto& t : others) t.join();
}

// Runs work(begin, end) over 0..size in grains, on as many threads as there is work for.
void parallel(int64_t size, int64_t grain, int threads, const std::function<void(int64_t, int64_t)>& work) {
    std::atomic<int64_t> next{0};
    on_threads(int(std::min<int64_t>(threads, (size + grain - 1) / grain)), [&] {
        for (int64_t begin; (begin = next.fetch_add(grain)) < size;) work(begin, std::min(begin + grain, size));
    });
}

void check_shapes(std::initializer_list<Matrix> matrices, int64_t pool, int64_t classes) {
    for (const Matrix& m : matrices)
        if (int64_t(m.shape(0)) != pool || int64_t(m.shape(1)) != classes)
            throw nb::value_error("what is kept of each class must be [pool, classes]");
}

int64_t moments(In x, Matrix mean, Matrix var, Matrix within, Column entropy, bool logits, double tolerance,
                int threads, const std::string& name) {
    const Layout in{int64_t(x.shape(0)), int64_t(x.shape(1)), int64_t(x.shape(2)),
                    x.stride(0),         x.stride(1),         x.stride(2)};
    if (in.draws < 1 || in.classes < 1) throw nb::value_error("draws must not be empty: [pool, draws, classes]");
    check_shapes({mean, var, within}, in.pool, in.classes);
    if (int64_t(entropy.shape(0)) != in.pool) throw nb::value_error("entropy must be [pool]");
    const bool is32 = x.dtype() == nb::dtype<float>();
    if (!is32 && x.dtype() != nb::dtype<double>()) throw nb::type_error("draws must be float32 or float64");
    if (reinterpret_cast<uintptr_t>(x.data()) % x.itemsize()) throw nb::value_error("draws must be aligned in memory");
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

bool posterior_terms(Matrix mean, Matrix var, Matrix within, Matrix terms, double floor, double width, int threads,
                     const std::string& name) {
    const int64_t pool = int64_t(mean.shape(0)), classes = int64_t(mean.shape(1));
    check_shapes({mean, var, within, terms}, pool, classes);
    const Output m{mean.data(), var.data(), within.data(), nullptr};
    double* to = terms.data();
    const Level& l = level(name);
    std::atomic<bool> good{true};
    nb::gil_scoped_release release;
    parallel(pool * classes, 4096, threads, [&](int64_t begin, int64_t end) {
        if (!l.posterior(m, to, floor, width, begin, end)) good = false;
    });
    return good;
}

using Keys = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void kept(Keys keys, Mask mask, int64_t threshold, int threads, const std::string& name) {
    const int64_t rows = int64_t(keys.shape(0)), units = int64_t(mask.shape(1));
    if (int64_t(mask.shape(0)) != rows) throw nb::value_error("mask must be [keys, units]");
    const int64_t* from = keys.data();
    float* to = mask.data();
    const Level& l = level(name);
    nb::gil_scoped_release release;
    parallel(rows, std::max<int64_t>(1, 65536 / (units + 1)), threads,
             [&](int64_t begin, int64_t end) { l.kept(from, to, units, threshold, begin, end); });
}

template <int N> using Floats = nb::ndarray<const float, nb::ndim<N>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

template <class Array> bool has_shape(const Array& x, std::initializer_list<int64_t> shape) {
    size_t axis = 0;
    for (int64_t n : shape)
        if (int64_t(x.shape(axis++)) != n) return false;
    return true;
}

bool convolved(Floats<4> images, Floats<4> weight, Floats<1> bias, Floats<3> linear, Floats<1> linear_bias,
               Floats<3> kept, Floats<3> after, Sums out, int64_t pool, float slope, int threads,
               const std::string& name) {
    const int64_t masks = int64_t(kept.shape(1));
    const Convolution s{int64_t(images.shape(0)), int64_t(kept.shape(0)), int64_t(images.shape(1)), int64_t(images.shape(2)),
                        int64_t(images.shape(3)), int64_t(weight.shape(1)), int64_t(bias.shape(0)), pool,
                        int64_t(linear.shape(2)), masks > 1, slope};
    if (pool < 1 || !has_shape(weight, {s.in, s.kernel, s.kernel, s.padded_out()}) ||
        !has_shape(linear, {s.out, s.high() * s.wide(), s.units}) || !has_shape(linear_bias, {s.units}) ||
        !has_shape(kept, {s.draws, masks, s.in}) || !has_shape(after, {s.draws, masks, s.out}) ||
        !has_shape(out, {s.points, s.draws, s.units}) || (masks != 1 && masks != s.points) || s.units % 64)
        throw nb::value_error("shapes of a convolution do not fit: see struct ConvolutionData");
    const ConvolutionData x{images.data(), weight.data(), bias.data(),  linear.data(),
                            linear_bias.data(), kept.data(), after.data(), out.data()};
    const Level& l = level(name);
    std::atomic<bool> good{true};
    nb::gil_scoped_release release;
    parallel(s.points, 4, threads, [&](int64_t begin, int64_t end) {
        if (!l.convolved(x, s, begin, end)) good = false;
    });
    return good;
}

using KeyRows = nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void thinned(Floats<2> values, Floats<2> weight, Floats<1> bias, KeyRows keys, Sums out, int64_t threshold, bool drop,
             int threads, const std::string& name) {
    const Thinned s{int64_t(values.shape(0)), int64_t(keys.shape(0)), int64_t(values.shape(1)), int64_t(weight.shape(1)),
                    threshold, drop};
    if (!has_shape(weight, {s.units, s.width}) || !has_shape(bias, {s.width}) || !has_shape(keys, {s.draws, s.points}) ||
        !has_shape(out, {s.points, s.draws, s.width}) || s.width % 16)
        throw nb::value_error("shapes of a linear map do not fit: see struct ThinnedData");
    const ThinnedData x{values.data(), weight.data(), bias.data(), keys.data(), out.data()};
    const Level& l = level(name);
    nb::gil_scoped_release release;
    parallel(s.points, 16, threads, [&](int64_t begin, int64_t end) { l.thinned(x, s, begin, end); });
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
    m.def("posterior_terms", &posterior_terms, "mean"_a, "var"_a, "within"_a, "terms"_a, "floor"_a, "width"_a,
          "threads"_a, "level"_a, "Fill terms with mean h(P+); false where a Beta is within `width` of Beta(1, 1).");
    m.def("convolved", &convolved, "images"_a, "weight"_a, "bias"_a, "linear"_a, "linear_bias"_a, "kept"_a, "after"_a,
          "out"_a, "pool"_a, "slope"_a, "threads"_a, "level"_a,
          "Fill out with all draws of a convolution between dropouts and the linear map behind; false if not compiled.");
    m.def("thinned", &thinned, "values"_a, "weight"_a, "bias"_a, "keys"_a, "out"_a, "threshold"_a, "drop"_a, "threads"_a,
          "level"_a, "Fill out with all draws of a linear map behind a dropout with masks by key.");
    m.def("kept", &kept, "keys"_a, "mask"_a, "threshold"_a, "threads"_a, "level"_a,
          "Fill mask with 1 where the hash of key and unit is at least the threshold.");
}
